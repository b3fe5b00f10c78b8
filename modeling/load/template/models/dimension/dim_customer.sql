SELECT c.customer_id, c.country, c.country <> 'DE' AS is_export
FROM src.customers c
