SELECT f.country,
       count(*)                            AS orders,
       sum(f.gross)                        AS gross,
       count(*) FILTER (WHERE f.is_big)    AS big_orders
FROM fct_order f
WHERE f.ds = DATE '${bizdate_iso}'
GROUP BY f.country
