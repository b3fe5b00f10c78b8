package spine

import "strings"

// volatileFunction tells the functions whose value no slot decides: random
// ones, clocks, sequences and the session's state.
func volatileFunction(name string, args int) bool {
	switch name {
	case "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval", "now", "today",
		"get_current_time", "get_current_timestamp", "transaction_timestamp", "txid_current", "current_transaction_id",
		"current_connection_id", "current_query_id", "current_query", "ago", "getenv", "getvariable", "pg_backend_pid",
		"pg_postmaster_start_time", "pg_conf_load_time", "statement_timestamp", "clock_timestamp", "current_localtime",
		"current_localtimestamp", "rand", "reservoir_quantile":
		return true
	case "age":
		return args == 1
	}
	return clockWord(name)
}

// clockWord tells the clocks that are written without parentheses.
func clockWord(name string) bool {
	switch strings.ToLower(name) {
	case "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp":
		return true
	}
	return false
}

// aggregateFunction tells the aggregates: they make one row of many.
func aggregateFunction(name string) bool {
	switch name {
	case "count", "count_star", "sum", "avg", "mean", "min", "max", "any_value", "arbitrary", "first", "last", "list", "array_agg",
		"string_agg", "group_concat", "listagg", "arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null", "arg_min_null",
		"arg_max_nulls_last", "arg_min_nulls_last", "bit_and", "bit_or", "bit_xor", "bitstring_agg", "bool_and", "bool_or", "count_if",
		"countif", "product", "histogram", "histogram_exact", "geomean", "geometric_mean", "fsum", "favg", "kahan_sum", "sumkahan",
		"wavg", "weighted_avg", "corr", "covar_pop", "covar_samp", "entropy", "kurtosis", "kurtosis_pop", "skewness", "mad", "median",
		"mode", "quantile", "quantile_cont", "quantile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
		"regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "sem", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp",
		"variance", "approx_count_distinct", "approx_quantile", "approx_top_k", "reservoir_quantile", "json_group_array",
		"json_group_object", "json_group_structure", "grouping", "grouping_id", "map_agg", "sum_no_overflow":
		return true
	}
	return false
}

// zeroOnEmpty tells the aggregates besides COUNT that are 0 over no rows; in a
// lateral join the engine makes NULL of it (README spine 10e).
func zeroOnEmpty(name string) bool {
	return name == "approx_count_distinct" || name == "regr_count" || name == "entropy"
}

// ordersRows tells the window functions whose value needs a total order.
func ordersRows(name string) bool {
	switch name {
	case "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last":
		return true
	}
	return false
}

// lateralArguments tells the table functions that take columns. A function
// that is not known is a macro of the user's: it is expanded before.
func lateralArguments(name string) bool {
	switch name {
	case "range", "generate_series", "unnest", "generate_subscripts", "json_each", "json_tree", "regexp_split_to_table":
		return true
	case "glob", "query", "query_table", "repeat", "repeat_row", "sniff_csv", "summary", "checkpoint", "force_checkpoint",
		"test_all_types", "test_vector_types", "which_secret", "arrow_scan", "arrow_scan_dumb", "pandas_scan", "python_map_function",
		"seq_scan", "index_scan", "sql_auto_complete", "json_execute_serialized_sql", "icu_calendar_names", "pg_timezone_names",
		"unnest_files", "st_read", "st_read_meta", "read_xlsx", "in_out_function":
		return false
	}
	for _, p := range []string{"read_", "parquet_", "duckdb_", "pragma_", "iceberg_", "delta_", "sqlite_", "postgres_", "mysql_", "st_drivers"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return !strings.HasSuffix(name, "_scan") && !strings.HasSuffix(name, "_query")
}
