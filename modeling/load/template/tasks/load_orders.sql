CREATE SCHEMA IF NOT EXISTS src;

CREATE TABLE IF NOT EXISTS src.orders (
    order_id BIGINT, customer_id INTEGER, product VARCHAR, quantity INTEGER, price DECIMAL(10, 2), ds DATE
);

CREATE TABLE IF NOT EXISTS src.customers (customer_id INTEGER, country VARCHAR);

-- Running a day again must give the same rows: delete, then insert.
DELETE FROM src.orders WHERE ds = DATE '${bizdate_iso}';

INSERT INTO src.orders
SELECT CAST('${bizdate}' AS BIGINT) * 1000 + n,
       CAST(n % 7 + 1 AS INTEGER),
       CASE n % 3 WHEN 0 THEN 'tea' WHEN 1 THEN 'coffee' ELSE 'cocoa' END,
       CAST(n % 5 + 1 AS INTEGER),
       CAST(5 + n % 20 AS DECIMAL(10, 2)),
       DATE '${bizdate_iso}'
FROM generate_series(1, 40) AS t(n);

INSERT INTO src.customers
SELECT CAST(n AS INTEGER), CASE n % 3 WHEN 0 THEN 'DE' WHEN 1 THEN 'FR' ELSE 'PL' END
FROM generate_series(1, 7) AS t(n)
WHERE n NOT IN (SELECT customer_id FROM src.customers);
