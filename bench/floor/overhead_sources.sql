-- The data of the suite overhead: 100 events a day for 400 days.
CREATE SCHEMA src;
CREATE TABLE src.events AS
SELECT DATE '2024-01-01' + CAST(range // 100 AS INTEGER) AS ds,
       range AS id,
       'r' || (range % 7) AS region,
       (range * 7919 % 1000) / 10.0 AS amount
FROM range(40_000);
