-- How much memory the processes of each service needed: the input of the Kaplan-Meier estimator.
-- Services are ended by SIGTERM: where memory had no part in it, such an end is a life, too.
-- Needs are rounded up to 1/128 of the power of two below them, which bounds the number of rows.
WITH chosen AS (
  SELECT
    COALESCE(service, script, program, 'unknown') AS service,
    kind = 'life' AS sampled,
    COALESCE(kind = 'life' OR (verdict = 'killed_externally' AND outcome = 'signal 15' AND kind = 'death'), FALSE) AS survived,
    cause,
    need_bytes,
    limit_bytes,
    life_weight
  FROM deaths
  WHERE kind <> 'warning' AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND (release = $release OR $release = '')
), needs AS (
  SELECT
    service,
    sampled,
    survived,
    cause,
    CASE WHEN survived THEN need_bytes ELSE GREATEST(need_bytes, limit_bytes) END AS bytes,  -- of a null, the other
    CASE WHEN survived THEN NULL ELSE limit_bytes END AS limit_bytes,
    CASE WHEN sampled THEN COALESCE(life_weight, 1) ELSE 1 END AS weight
  FROM chosen
)
SELECT
  service,
  sampled,
  survived,
  cause,
  limit_bytes,
  weight,
  CAST(CEIL(bytes / POWER(2, FLOOR(LOG2(bytes)) - 7)) * POWER(2, FLOOR(LOG2(bytes)) - 7) AS BIGINT) AS need_bytes,
  COUNT(*) AS processes
FROM needs
WHERE bytes > 0
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY 1, 2, 3, 4 NULLS LAST, 5 NULLS LAST, 6, 7
