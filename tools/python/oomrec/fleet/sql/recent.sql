-- The newest deaths of a signature.
SELECT death_id, time, host, service, release, verdict, outcome, need_bytes, limit_bytes, raw_key
FROM deaths
WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND COALESCE(signature, 'unknown') = $signature
ORDER BY time DESC, death_id
LIMIT $most
