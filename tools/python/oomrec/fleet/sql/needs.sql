-- How much memory the processes of each service needed: the input of the Kaplan-Meier estimator.
-- Needs are rounded up to 1/128 of the power of two below them, which bounds the number of rows.
WITH chosen AS (
  SELECT
    COALESCE(service, script, program, 'unknown') AS service,
    kind,
    cause,
    CASE WHEN kind = 'life' THEN need_bytes ELSE GREATEST(COALESCE(need_bytes, 0), COALESCE(limit_bytes, 0)) END AS bytes,
    CASE WHEN kind = 'life' THEN NULL ELSE limit_bytes END AS limit_bytes,
    CASE WHEN kind = 'life' THEN COALESCE(life_weight, 1) ELSE 1 END AS weight
  FROM deaths
  WHERE kind <> 'warning' AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND (release = $release OR $release = '')
)
SELECT
  service,
  kind = 'life' AS survived,
  cause,
  limit_bytes,
  weight,
  CAST(CEIL(bytes / POWER(2, FLOOR(LOG2(bytes)) - 7)) * POWER(2, FLOOR(LOG2(bytes)) - 7) AS BIGINT) AS need_bytes,
  COUNT(*) AS processes
FROM chosen
WHERE bytes > 0
GROUP BY 1, 2, 3, 4, 5, 6
ORDER BY 1, 2, 3 NULLS LAST, 4 NULLS LAST, 5, 6
