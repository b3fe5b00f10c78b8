package sqlast

import "encoding/json"

// The engine's tree as DuckDB's json_serialize_sql gives it. One struct per
// node family holds the members of all its kinds; absent ones stay zero.

// noLocation is the engine's mark for a node without a place in the text.
const noLocation = 1<<64 - 1

type astDocument struct {
	Error        bool   `json:"error"`
	ErrorType    string `json:"error_type"`
	ErrorMessage string `json:"error_message"`
	Position     string `json:"position"`
	Statements   []struct {
		Node *astQuery `json:"node"`
	} `json:"statements"`
}

type astQuery struct {
	Type              string          `json:"type"`
	Modifiers         []*astModifier  `json:"modifiers"`
	CTEs              astCTEMap       `json:"cte_map"`
	SelectList        []*astExpr      `json:"select_list"`
	From              *astRef         `json:"from_table"`
	Where             *astExpr        `json:"where_clause"`
	Groups            []*astExpr      `json:"group_expressions"`
	GroupSets         [][]int         `json:"group_sets"`
	AggregateHandling string          `json:"aggregate_handling"`
	Having            *astExpr        `json:"having"`
	Qualify           *astExpr        `json:"qualify"`
	Sample            json.RawMessage `json:"sample"`
	SetOp             string          `json:"setop_type"`
	SetOpAll          bool            `json:"setop_all"`
	Left              *astQuery       `json:"left"`
	Right             *astQuery       `json:"right"`
	CTEName           string          `json:"cte_name"`
	UnionAll          bool            `json:"union_all"`
}

type astCTEMap struct {
	Map []struct {
		Key   string `json:"key"`
		Value struct {
			Aliases []string    `json:"aliases"`
			Query   astSubquery `json:"query"`
		} `json:"value"`
	} `json:"map"`
}

type astSubquery struct {
	Node *astQuery `json:"node"`
}

type astModifier struct {
	Type       string     `json:"type"`
	Orders     []astOrder `json:"orders"`
	DistinctOn []*astExpr `json:"distinct_on_targets"`
	Limit      *astExpr   `json:"limit"`
	Offset     *astExpr   `json:"offset"`
}

type astOrder struct {
	Type      string   `json:"type"`
	NullOrder string   `json:"null_order"`
	Expr      *astExpr `json:"expression"`
}

type astRef struct {
	Type           string          `json:"type"`
	Alias          string          `json:"alias"`
	Sample         json.RawMessage `json:"sample"`
	Loc            uint64          `json:"query_location"`
	Schema         string          `json:"schema_name"`
	Table          string          `json:"table_name"`
	Catalog        string          `json:"catalog_name"`
	At             json.RawMessage `json:"at_clause"`
	ColumnAliases  []string        `json:"column_name_alias"`
	Left           *astRef         `json:"left"`
	Right          *astRef         `json:"right"`
	Condition      *astExpr        `json:"condition"`
	JoinType       string          `json:"join_type"`
	RefType        string          `json:"ref_type"`
	Using          []string        `json:"using_columns"`
	Subquery       *astSubquery    `json:"subquery"`
	Function       *astExpr        `json:"function"`
	WithOrdinality string          `json:"with_ordinality"`
	Values         [][]*astExpr    `json:"values"`
	Source         *astRef         `json:"source"` // PIVOT
	Query          *astQuery       `json:"query"`  // SHOW_REF
}

type astExpr struct {
	Class          string          `json:"class"`
	Type           string          `json:"type"`
	Alias          string          `json:"alias"`
	Loc            uint64          `json:"query_location"`
	Names          []string        `json:"column_names"`
	Function       string          `json:"function_name"`
	Schema         string          `json:"schema"`
	Catalog        string          `json:"catalog"`
	Children       []*astExpr      `json:"children"`
	Filter         *astExpr        `json:"filter"`
	OrderBys       *astModifier    `json:"order_bys"`
	Distinct       bool            `json:"distinct"`
	Value          *astValue       `json:"value"`
	Child          *astExpr        `json:"child"`
	CastType       json.RawMessage `json:"cast_type"`
	TryCast        bool            `json:"try_cast"`
	Collation      string          `json:"collation"`
	Checks         []astCheck      `json:"case_checks"`
	Else           *astExpr        `json:"else_expr"`
	Left           *astExpr        `json:"left"`
	Right          *astExpr        `json:"right"`
	Input          *astExpr        `json:"input"`
	Lower          *astExpr        `json:"lower"`
	Upper          *astExpr        `json:"upper"`
	SubqueryType   string          `json:"subquery_type"`
	Subquery       *astSubquery    `json:"subquery"`
	ComparisonType string          `json:"comparison_type"`
	Lhs            *astExpr        `json:"lhs"`
	Expr           *astExpr        `json:"expr"`
	Identifier     string          `json:"identifier"`
	Index          int             `json:"index"`
	// STAR
	Relation         string       `json:"relation_name"`
	Exclude          []string     `json:"exclude_list"`
	QualifiedExclude []astColName `json:"qualified_exclude_list"`
	Replace          []astReplace `json:"replace_list"`
	Rename           []astRename  `json:"rename_list"`
	Columns          bool         `json:"columns"`
	// WINDOW
	Partitions    []*astExpr `json:"partitions"`
	Orders        []astOrder `json:"orders"`
	Start         string     `json:"start"`
	End           string     `json:"end"`
	StartExpr     *astExpr   `json:"start_expr"`
	EndExpr       *astExpr   `json:"end_expr"`
	OffsetExpr    *astExpr   `json:"offset_expr"`
	DefaultExpr   *astExpr   `json:"default_expr"`
	IgnoreNulls   bool       `json:"ignore_nulls"`
	WindowFilter  *astExpr   `json:"filter_expr"`
	ExcludeClause string     `json:"exclude_clause"`
	ArgOrders     []astOrder `json:"arg_orders"`
}

type astCheck struct {
	When *astExpr `json:"when_expr"`
	Then *astExpr `json:"then_expr"`
}

type astColName struct {
	Table  string `json:"table"`
	Column string `json:"column"`
}

type astReplace struct {
	Key   string   `json:"key"`
	Value *astExpr `json:"value"`
}

type astRename struct {
	Key   astColName `json:"key"`
	Value string     `json:"value"`
}

type astValue struct {
	Type   json.RawMessage `json:"type"`
	IsNull bool            `json:"is_null"`
	Value  json.RawMessage `json:"value"`
}

// typeName writes an engine type canonically: its id, with width and scale for
// decimals and the raw description for nested and user types.
func typeName(raw json.RawMessage) string {
	var t struct {
		ID   string          `json:"id"`
		Info json.RawMessage `json:"type_info"`
	}
	if err := json.Unmarshal(raw, &t); err != nil || t.ID == "" {
		return string(raw)
	}
	if len(t.Info) == 0 || string(t.Info) == "null" {
		return t.ID
	}
	if t.ID == "DECIMAL" {
		var d struct{ Width, Scale json.Number }
		if json.Unmarshal(t.Info, &d) == nil {
			return "DECIMAL(" + d.Width.String() + "," + d.Scale.String() + ")"
		}
	}
	return t.ID + string(t.Info)
}
