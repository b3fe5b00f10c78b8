SELECT o.order_id,
       o.customer_id,
       o.product,
       o.quantity,
       o.price,
       o.quantity * o.price                    AS gross,
       o.quantity * o.price >= ${big_order}    AS is_big,
       c.country
FROM src.orders o
LEFT JOIN dim_customer c ON c.customer_id = o.customer_id AND c.ds = DATE '${bizdate_iso}'
WHERE o.ds = DATE '${bizdate_iso}'
