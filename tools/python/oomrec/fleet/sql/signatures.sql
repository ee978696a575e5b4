-- The signatures with deaths from $since to $until, those that cost most first.
-- new: never before. regressed: not seen since $absent, or at least 20 deaths and twice the daily rate since $before.
WITH counted AS (
  SELECT
    COALESCE(signature, 'unknown') AS signature,
    MIN(title) AS title,
    MIN(time) AS first_seen,
    MAX(time) AS last_seen,
    COUNT(*) FILTER (WHERE time >= CAST($since AS TIMESTAMP)) AS deaths,
    COUNT(*) FILTER (WHERE time >= CAST($before AS TIMESTAMP) AND time < CAST($since AS TIMESTAMP)) AS deaths_before,
    COUNT(*) FILTER (WHERE time >= CAST($absent AS TIMESTAMP) AND time < CAST($since AS TIMESTAMP)) AS deaths_lately,
    ROUND(COALESCE(SUM(lost_gib_hours) FILTER (WHERE time >= CAST($since AS TIMESTAMP)), 0), 2) AS lost_gib_hours,
    ROUND(AVG(top_share) FILTER (WHERE time >= CAST($since AS TIMESTAMP)), 3) AS top_share,
    COUNT(*) FILTER (WHERE cause = 'leak' AND time >= CAST($since AS TIMESTAMP)) AS leaks,
    COUNT(*) FILTER (WHERE cause = 'limit_too_low' AND time >= CAST($since AS TIMESTAMP)) AS limits_too_low,
    COUNT(*) FILTER (WHERE cause = 'giant_request' AND time >= CAST($since AS TIMESTAMP)) AS giant_requests
  FROM deaths
  WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time < CAST($until AS TIMESTAMP)
  GROUP BY 1
), states AS (
  SELECT
    *,
    CASE
      WHEN first_seen >= CAST($since AS TIMESTAMP) THEN 'new'
      WHEN deaths_lately = 0 THEN 'regressed'
      WHEN deaths >= 20 AND deaths / $window_days >= 2 * deaths_before / $history_days THEN 'regressed'
      ELSE 'ongoing'
    END AS state
  FROM counted
  WHERE deaths > 0
)
SELECT *
FROM states
WHERE state = $state OR $state = 'any'
ORDER BY lost_gib_hours DESC, deaths DESC, signature
LIMIT $most
