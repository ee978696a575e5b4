-- The deaths of a window, the oldest first.
SELECT death_id, day
FROM deaths
WHERE kind IN ('death', 'failure') AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP)
ORDER BY time, death_id
