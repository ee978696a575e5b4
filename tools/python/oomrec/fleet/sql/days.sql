-- Of each of $signatures: its deaths by day.
SELECT COALESCE(signature, 'unknown') AS signature, day, COUNT(*) AS deaths
FROM deaths
WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND array_contains($signatures, COALESCE(signature, 'unknown'))
GROUP BY 1, 2
ORDER BY 1, 2
