-- Queries over the world of fixtures/cases/split.yaml, one a line: key | query.
-- TestSplitClaimsOnData changes the data and checks what the splitter claims.
order_id | SELECT order_id, amount, lag(amount) OVER (PARTITION BY customer_id ORDER BY placed_on, order_id) AS p FROM orders
customer_id | SELECT c.customer_id, ci.name, ci.country FROM customers c RIGHT JOIN cities ci ON ci.city_id = c.city_id
id | SELECT coalesce(c.customer_id, o.customer_id) AS id, c.name, o.amount FROM customers c FULL JOIN orders o ON o.customer_id = c.customer_id
customer_id | SELECT customer_id, c.name, o.amount FROM customers c FULL JOIN orders o USING (customer_id)
order_id | SELECT o.order_id, r.rate, o.status FROM orders o ASOF LEFT JOIN rates r ON r.currency = o.currency AND r.ds <= o.ds
order_id | SELECT o.order_id, r.rate FROM orders o LEFT JOIN rates r ON r.currency = o.currency AND r.ds = 20240115
order_id, k | SELECT order_id, unnest([1,2]) AS k, amount FROM orders
sku, tag | SELECT sku, unnest(tags) AS tag, name, category FROM products
sku, tag | SELECT p.sku, t.tag, p.name FROM products p LEFT JOIN LATERAL (SELECT unnest(p.tags) AS tag) t ON true
status, currency | SELECT status, currency, sum(amount) AS s, count(*) AS n FROM orders GROUP BY ROLLUP (status, currency)
status | SELECT status, grouping(status) AS g, sum(amount) AS s FROM orders GROUP BY GROUPING SETS ((status), ())
customer_id | SELECT customer_id, list_transform([1,2], x -> x + referrer_id) AS l, [name || y FOR y IN ['a', 'b'] IF y <> email] AS m FROM customers
customer_id | SELECT * FROM customers c SEMI JOIN orders USING (customer_id)
customer_id | SELECT customer_id, name FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM notes)
customer_id, s | WITH t AS (SELECT * FROM orders), u AS (SELECT ds, customer_id, sum(amount) s, count(*) n FROM t GROUP BY ALL) SELECT customer_id, s FROM u WHERE ds = '20240115' AND n > 0
order_id | SELECT * FROM (SELECT order_id, ds, amount, row_number() OVER (PARTITION BY ds ORDER BY order_id) rn FROM orders) WHERE ds = '20240115'
order_id | SELECT * FROM (SELECT order_id, ds, status FROM orders UNION ALL SELECT order_id, ds, currency FROM orders_v2) u WHERE ds >= '20240112'
customer_id | SELECT c.customer_id, o.amount, c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.order_id = (SELECT max(order_id) FROM orders x WHERE x.customer_id = c.customer_id)
customer_id | SELECT customer_id, (SELECT o.amount FROM orders o WHERE o.customer_id = c.customer_id ORDER BY o.placed_on DESC, order_id LIMIT 1) AS last_amt, c.vip FROM customers c
order_id | SELECT o.order_id, (SELECT l.sku FROM order_lines l WHERE l.order_id = o.order_id ORDER BY line_no LIMIT 1) AS first_sku FROM orders o
one | SELECT 1 AS one, arg_max(status, order_id) AS am, first(status ORDER BY order_id) AS f, avg(amount) a1, median(discount) AS md FROM orders
n | SELECT count(o.*) AS n, count(DISTINCT o.status) AS d FROM orders o
customer_id, name | SELECT customer_id, name FROM customers UNION ALL BY NAME SELECT name, city_id AS extra FROM cities
customer_id | SELECT customer_id FROM customers INTERSECT SELECT customer_id FROM orders WHERE amount > 20
order_id | SELECT o.order_id, x.name FROM orders o LEFT JOIN (SELECT DISTINCT customer_id, name FROM customers) x ON x.customer_id = o.customer_id
order_id | SELECT o.order_id, x.n FROM orders o LEFT JOIN (SELECT DISTINCT ON (customer_id) customer_id, note AS n FROM notes ORDER BY customer_id, note, written_on) x ON x.customer_id = o.customer_id
order_id | SELECT o.order_id, x.m, o.amount / x.m AS share FROM orders o CROSS JOIN (SELECT max(amount) AS m FROM orders WHERE status = 'paid') x
order_id | SELECT o.order_id, c.name FROM orders o LEFT JOIN (customers c JOIN cities ci ON ci.city_id = c.city_id) ON c.customer_id = o.customer_id
order_id | SELECT o.order_id, c.name FROM orders o LEFT JOIN customers c ON (c.customer_id, 1) = (o.customer_id, 1)
order_id | SELECT o.order_id, sum(o.amount) OVER w AS s, rank() OVER w AS r FROM orders o WINDOW w AS (PARTITION BY customer_id ORDER BY placed_on)
status | SELECT upper(status) AS status, count(*) AS n FROM orders GROUP BY orders.status HAVING min(amount) > 5
customer_id | SELECT customer_id, sum(amount) AS amount FROM orders GROUP BY customer_id HAVING amount > 50
order_id | SELECT order_id, -amount AS amount, discount FROM orders ORDER BY amount, order_id LIMIT 3
order_id | SELECT order_id, -amount AS amount, discount FROM orders ORDER BY amount + 0, order_id LIMIT 3
order_id | SELECT order_id, amount, status AS currency FROM orders WHERE currency = 'EUR'
customer_id | SELECT customer_id, name FROM customers c WHERE EXISTS (SELECT 1 FROM cities WHERE city_id = c.city_id AND name = c.name)
customer_id | SELECT c.customer_id, ci.name AS city FROM customers c LEFT JOIN cities ci USING (city_id) WHERE EXISTS (SELECT 1 FROM countries co WHERE co.country = ci.country)
customer_id | SELECT c.customer_id, l.n FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id, LATERAL (SELECT ci.name AS n, unnest([1]) AS one WHERE ci.country = 'PE') l
customer_id, city_id | SELECT customer_id, city_id, max(name) AS name FROM customers GROUP BY customer_id, city_id HAVING bool_or(vip)
city | SELECT ci.name AS city, count(*) AS n, max(c.name) AS who FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id GROUP BY 1
customer_id | SELECT c.customer_id, d.cnt, d.cname FROM customers c LEFT JOIN (SELECT x.city_id, count(*) AS cnt, max(co.continent) AS cname FROM cities x LEFT JOIN countries co ON co.country = x.country GROUP BY x.city_id) d ON d.city_id = c.city_id
customer_id | WITH orders AS (SELECT order_id, customer_id, amount FROM orders WHERE status = 'paid') SELECT customer_id, sum(amount) AS s FROM orders GROUP BY ALL
customer_id | WITH a AS (SELECT customer_id, name FROM customers), b AS (WITH a AS (SELECT customer_id, note AS name FROM notes) SELECT * FROM a) SELECT a.customer_id, max(b.name) AS n, any_value(a.name ORDER BY a.name) AS m FROM a JOIN b USING (customer_id) GROUP BY ALL
customer_id | SELECT customer_id, (SELECT count(*) FROM orders WHERE orders.customer_id = customers.customer_id AND amount > (SELECT avg(price) FROM order_lines l WHERE l.order_id = orders.order_id)) AS n FROM customers
visit_id | SELECT visit_id, payload.x AS a, x AS b, v.payload.device AS c, (v.payload).x + v.x AS d FROM visits v
visit_id | SELECT visit_id, x.x AS y FROM visits, (SELECT 3 AS x) x
customer_id | SELECT customer_id, row_number() OVER (ORDER BY customer_id) AS rn FROM (SELECT DISTINCT customer_id FROM orders WHERE customer_id IS NOT NULL)
customer_id | SELECT customer_id, name, amount FROM customers NATURAL JOIN (SELECT customer_id, max(amount) AS amount FROM orders GROUP BY 1)
customer_id | SELECT customer_id, sum(amount) FILTER (WHERE status = 'paid') AS p, sum(amount) FILTER (WHERE ds > '20240112') AS q FROM orders GROUP BY customer_id QUALIFY row_number() OVER (ORDER BY max(discount) DESC NULLS LAST, customer_id) <= 2
order_id | SELECT order_id, CASE currency WHEN 'EUR' THEN amount ELSE discount END AS v, status IN ('paid', currency) AS i, amount BETWEEN discount AND 100 AS b, placed_on::VARCHAR || ds AS t FROM orders
order_id | SELECT order_id, (SELECT max(m) FROM (SELECT amount AS m UNION ALL SELECT discount)) AS m FROM orders
order_id | SELECT order_id, amount > ALL (SELECT price FROM order_lines) AS big, amount = ANY (SELECT price FROM order_lines WHERE qty > 1) AS eq FROM orders
order_id | SELECT order_id, list_aggregate([amount, discount], 'sum') AS s, [amount, discount][1] AS f, {'a': status}.a AS st FROM orders
day | SELECT d.day, count(o.order_id) AS n, sum(o.amount) AS s FROM (SELECT unnest(range(DATE '2024-01-10', DATE '2024-01-16', INTERVAL 1 DAY)) AS day) d LEFT JOIN orders o ON o.placed_on = d.day GROUP BY d.day
id | SELECT id, max(label) AS l FROM (VALUES (1, 'a'), (2, 'b')) v(id, label) LEFT JOIN orders ON order_id - 100 = id GROUP BY id
order_id | SELECT * EXCLUDE (ds) REPLACE (amount * 2 AS amount) RENAME (status AS state) FROM orders
order_id | SELECT o.*, c.* EXCLUDE (customer_id) FROM orders o LEFT JOIN customers c USING (customer_id)
customer_id | SELECT c.customer_id, t.total FROM customers c LEFT JOIN (SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id HAVING count(*) > 1 ORDER BY total LIMIT 5) t USING (customer_id)
customer_id | SELECT c.customer_id, a.name AS ref, b.name AS refref FROM customers c LEFT JOIN customers a ON a.customer_id = c.referrer_id LEFT JOIN customers b ON b.customer_id = a.referrer_id
order_id | SELECT o.order_id, coalesce(c.name, 'none') AS who, ci.name AS city, co.continent FROM orders o LEFT JOIN customers c ON c.customer_id = o.customer_id LEFT JOIN cities ci ON ci.city_id = c.city_id JOIN countries co ON co.country = ci.country
order_id | SELECT o.order_id, c.name FROM orders o LEFT JOIN (SELECT customer_id, name FROM customers WHERE vip UNION ALL SELECT customer_id, name FROM customers WHERE NOT vip) c ON c.customer_id = o.customer_id
order_id | SELECT o.order_id, x.one FROM orders o LEFT JOIN (SELECT customer_id, 1 AS one FROM customers WHERE vip) x ON x.customer_id = o.customer_id
status | SELECT DISTINCT ON (status) status, order_id, amount FROM orders ORDER BY status, amount DESC, order_id
customer_id | SELECT customer_id, max(t) AS mt FROM (SELECT customer_id, status, sum(amount) AS t FROM orders GROUP BY customer_id, status) GROUP BY customer_id
order_id | SELECT order_id, n FROM (SELECT order_id, status, count(*) OVER () AS n FROM orders) WHERE status = 'paid'
