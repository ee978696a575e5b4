-- The signatures with deaths from $since to $until, those that cost most first.
-- Sums are of whole thousandths: those of floating point depend on the order of the rows.
-- new: never before. regressed: not seen for two weeks, or at least 20 deaths and twice the daily rate of the four weeks before.
WITH now_seen AS (
  SELECT
    COALESCE(signature, 'unknown') AS signature,
    MIN(title) AS title,
    MIN(time) AS first_seen,
    MAX(time) AS last_seen,
    COUNT(*) AS deaths,
    COALESCE(SUM(CAST(FLOOR(lost_gib_hours * 1000 + 0.5) AS BIGINT)), 0) / 1000 AS lost_gib_hours,
    FLOOR(SUM(CAST(FLOOR(top_share * 1000 + 0.5) AS BIGINT)) / NULLIF(COUNT(top_share), 0) + 0.5) / 1000 AS top_share,
    COUNT(*) FILTER (WHERE cause = 'leak') AS leaks,
    COUNT(*) FILTER (WHERE cause = 'limit_too_low') AS limits_too_low,
    COUNT(*) FILTER (WHERE cause = 'giant_request') AS giant_requests
  FROM deaths
  WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP)
  GROUP BY 1
), seen_before AS (
  SELECT
    COALESCE(signature, 'unknown') AS signature,
    MIN(time) AS first_seen,
    COUNT(*) FILTER (WHERE time >= CAST($weeks_4 AS TIMESTAMP)) AS deaths_before,
    COUNT(*) FILTER (WHERE time >= CAST($weeks_2 AS TIMESTAMP)) AS deaths_lately
  FROM deaths
  WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time < CAST($since AS TIMESTAMP)
  GROUP BY 1
), history AS (  -- the days before $since that the table knows, in whole weeks
  SELECT
    CASE
      WHEN MIN(first_seen) < CAST($weeks_3 AS TIMESTAMP) THEN 28
      WHEN MIN(first_seen) < CAST($weeks_2 AS TIMESTAMP) THEN 21
      WHEN MIN(first_seen) < CAST($weeks_1 AS TIMESTAMP) THEN 14
      ELSE 7
    END AS days
  FROM seen_before
), states AS (
  SELECT
    now_seen.signature AS signature,
    title,
    COALESCE(seen_before.first_seen, now_seen.first_seen) AS first_seen,
    last_seen,
    deaths,
    COALESCE(deaths_before, 0) AS deaths_before,
    lost_gib_hours,
    top_share,
    leaks,
    limits_too_low,
    giant_requests,
    CASE
      WHEN seen_before.first_seen IS NULL THEN 'new'
      WHEN deaths_lately = 0 THEN 'regressed'
      WHEN deaths >= 20 AND deaths / $window_days >= 2 * deaths_before / history.days THEN 'regressed'
      ELSE 'ongoing'
    END AS state
  FROM now_seen
  LEFT JOIN seen_before ON now_seen.signature = seen_before.signature
  CROSS JOIN history
)
SELECT *
FROM states
WHERE state = $state OR $state = 'any'
ORDER BY lost_gib_hours DESC, deaths DESC, signature
LIMIT $most
