-- Of each of $signatures: the death whose need is nearest to the median.
WITH chosen AS (
  SELECT COALESCE(signature, 'unknown') AS signature, death_id, day, COALESCE(need_bytes, 0) AS need_bytes
  FROM deaths
  WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND array_contains($signatures, COALESCE(signature, 'unknown'))
), middles AS (
  SELECT signature, percentile_cont(0.5) WITHIN GROUP (ORDER BY need_bytes) AS middle
  FROM chosen
  GROUP BY signature
), placed AS (
  SELECT
    chosen.signature AS signature,
    death_id,
    day,
    ROW_NUMBER() OVER (PARTITION BY chosen.signature ORDER BY ABS(need_bytes - middle), death_id) AS place
  FROM chosen
  JOIN middles ON chosen.signature = middles.signature
)
SELECT signature, death_id, day
FROM placed
WHERE place = 1
ORDER BY signature
