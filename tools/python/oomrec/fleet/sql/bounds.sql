-- From when to when there are deaths.
SELECT MIN(time) AS first_time, MAX(time) AS last_time
FROM deaths
WHERE time < CAST($until AS TIMESTAMP)
