-- The releases that have rows, the newest first.
SELECT release, COUNT(*) AS processes, MAX(time) AS last_time
FROM deaths
WHERE release IS NOT NULL
GROUP BY release
ORDER BY last_time DESC, release
LIMIT 1000
