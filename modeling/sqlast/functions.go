package sqlast

import "strings"

// What the analysis must know of the engine's functions. Everything unknown is
// an ordinary scalar function of its arguments.

// aggKind says how an aggregate depends on the order of its rows.
type aggKind int

const (
	aggNone     aggKind = iota
	aggPlain            // order-independent
	aggOrdered          // takes the order of the rows (first, list, string_agg…)
	aggFloating         // order-independent but for floating-point arguments
	aggInexact          // computes in floating point whatever the arguments
	aggRandom           // approximate or sampled
	aggByOther          // arg_max(x, by): ties of the second argument
)

func aggregateKind(name string) aggKind {
	switch name {
	case "any_value", "arbitrary", "array_agg", "list", "first", "last", "group_concat", "listagg", "string_agg",
		"json_group_array", "json_group_object", "mode":
		return aggOrdered
	case "arg_max", "arg_max_null", "arg_max_nulls_last", "arg_min", "arg_min_null", "arg_min_nulls_last",
		"argmax", "argmin", "max_by", "min_by":
		return aggByOther
	case "sum", "avg", "mean", "product", "sum_no_overflow", "wavg", "weighted_avg":
		return aggFloating
	case "favg", "fsum", "kahan_sum", "sumkahan", "corr", "covar_pop", "covar_samp", "kurtosis", "kurtosis_pop",
		"regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
		"sem", "skewness", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance",
		"geomean", "geometric_mean", "entropy":
		return aggInexact
	case "approx_quantile", "approx_top_k", "reservoir_quantile":
		return aggRandom
	case "approx_count_distinct", "bit_and", "bit_or", "bit_xor", "bitstring_agg", "bool_and", "bool_or", "count",
		"count_if", "count_star", "countif", "histogram", "histogram_exact", "json_group_structure", "mad", "max",
		"median", "min", "quantile", "quantile_cont", "quantile_disc", "regr_count", "grouping", "grouping_id":
		return aggPlain
	}
	return aggNone
}

// isVolatile tells the random and clock functions (README split 5).
func isVolatile(name string, args int) bool {
	switch name {
	case "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval", "now", "today",
		"current_date", "current_time", "current_timestamp", "get_current_time", "get_current_timestamp",
		"localtime", "localtimestamp", "transaction_timestamp", "current_localtime", "current_localtimestamp",
		"txid_current", "current_transaction_id", "current_connection_id", "current_query_id", "current_query", "ago",
		"pg_postmaster_start_time", "pg_conf_load_time", "getenv", "getvariable", "pg_backend_pid":
		return true
	case "age":
		return args == 1
	}
	return false
}

// isNiladic tells the functions that may be written without parentheses.
func isNiladic(name string) bool {
	switch name {
	case "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "today", "now",
		"user", "current_user", "session_user", "current_role", "current_schema", "current_catalog", "current_database":
		return true
	}
	return false
}

// takesLambda tells the functions whose `x -> …` argument is a lambda; in all
// others the arrow is JSON access.
func takesLambda(name string) bool {
	switch name {
	case "apply", "array_apply", "array_filter", "array_reduce", "array_transform", "filter", "list_apply",
		"list_filter", "list_reduce", "list_transform", "reduce":
		return true
	}
	return false
}

// makesRows tells the table functions that compute their rows from their
// arguments alone; every other one reads something undeclared.
func makesRows(name string) bool {
	switch name {
	case "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "generate_subscripts",
		"regexp_split_to_table":
		return true
	}
	return false
}

// ordersRows tells the window functions that need a total order.
func ordersRows(name string) bool {
	switch name {
	case "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "fill":
		return true
	}
	return false
}

// resultType infers a function's type where the rules need it: text keys
// (README split 1) and floating-point sums (split 5). "" = unknown.
func resultType(name string, args []*expr) string {
	switch name {
	case "upper", "lower", "ucase", "lcase", "concat", "concat_ws", "||", "substr", "substring", "trim", "ltrim", "rtrim",
		"replace", "left", "right", "lpad", "rpad", "strftime", "format", "printf", "md5", "sha256", "string_agg",
		"group_concat", "listagg", "regexp_replace", "regexp_extract", "reverse", "split_part", "translate", "chr", "hex",
		"dayname", "monthname", "array_to_string", "strip_accents", "json_extract_string", "->>", "typeof":
		if name == "||" && len(args) > 0 && strings.HasSuffix(args[0].typ, "[]") {
			return ""
		}
		return "VARCHAR"
	case "sqrt", "exp", "ln", "log", "log2", "log10", "power", "pow", "^", "**", "/", "random", "avg", "mean", "fdiv",
		"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "sin", "cos", "tan", "epoch", "pi", "favg", "fsum":
		return "DOUBLE"
	case "count", "count_star", "row_number", "rank", "dense_rank", "ntile", "length", "strlen", "date_part", "date_diff",
		"datediff", "year", "month", "day", "hour", "minute", "isodow", "week", "quarter", "position", "strpos", "instr", "len":
		return "BIGINT"
	case "percent_rank", "cume_dist":
		return "DOUBLE"
	case "+", "-", "*", "%", "//", "sum", "abs", "min", "max", "round", "coalesce", "ifnull", "nullif", "greatest", "least",
		"lag", "lead", "first", "last", "any_value", "first_value", "last_value", "nth_value", "case", "sum_no_overflow",
		"arg_max", "arg_min", "max_by", "min_by", "median", "product", "floor", "ceil":
		return commonType(args)
	}
	return ""
}

// commonType gives the type the arguments meet in, as far as the rules need.
func commonType(args []*expr) string {
	t := ""
	literal := false
	for _, x := range args {
		switch {
		case x.op == opText || x.op == opConst && strings.HasPrefix(x.text, "'"):
			literal = true // takes the type of the others
		case isFloating(x.typ):
			return "DOUBLE"
		case x.op == opConst && x.text == "NULL":
		case x.typ == "":
			return ""
		case t == "" || t == x.typ:
			t = x.typ
		case isInteger(t) && isInteger(x.typ):
			t = "BIGINT"
		case (isInteger(t) || isDecimal(t)) && (isInteger(x.typ) || isDecimal(x.typ)):
			t = "DECIMAL"
		default:
			return ""
		}
	}
	if t == "" && literal {
		return "VARCHAR"
	}
	return t
}

func isFloating(t string) bool { return t == "DOUBLE" || t == "FLOAT" || t == "REAL" }
func isDecimal(t string) bool  { return strings.HasPrefix(t, "DECIMAL") }

func isInteger(t string) bool {
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT":
		return true
	}
	return false
}

// normalType maps the spellings of a declared type to the engine's.
func normalType(t string) string {
	u := strings.ToUpper(strings.TrimSpace(t))
	if strings.HasPrefix(u, "STRUCT(") {
		return "STRUCT(" + strings.TrimSpace(t)[len("STRUCT("):] // field names keep their case
	}
	switch u {
	case "INT", "INT4", "SIGNED":
		return "INTEGER"
	case "INT8", "LONG":
		return "BIGINT"
	case "INT2", "SHORT":
		return "SMALLINT"
	case "TEXT", "STRING", "CHAR", "BPCHAR":
		return "VARCHAR"
	case "FLOAT8":
		return "DOUBLE"
	case "FLOAT4", "REAL":
		return "FLOAT"
	case "BOOL", "LOGICAL":
		return "BOOLEAN"
	case "DATETIME", "TIMESTAMP WITHOUT TIME ZONE":
		return "TIMESTAMP"
	case "TIMESTAMPTZ":
		return "TIMESTAMP WITH TIME ZONE"
	}
	if strings.HasPrefix(u, "VARCHAR(") || strings.HasPrefix(u, "CHAR(") {
		return "VARCHAR"
	}
	if strings.HasPrefix(u, "NUMERIC") {
		return "DECIMAL" + strings.TrimPrefix(u, "NUMERIC")
	}
	return u
}
