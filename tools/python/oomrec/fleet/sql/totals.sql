-- The deaths of a window as a whole. Followers died because another process did: they count apart.
SELECT
  COUNT(*) FILTER (WHERE COALESCE(episode_role, 'root') = 'root') AS deaths,
  COUNT(*) FILTER (WHERE episode_role = 'follower') AS followers,
  COUNT(DISTINCT signature) AS signatures,
  COUNT(DISTINCT host) AS hosts,
  COALESCE(SUM(CAST(FLOOR(lost_gib_hours * 1000 + 0.5) AS BIGINT)), 0) / 1000 AS lost_gib_hours
FROM deaths
WHERE kind IN ('death', 'failure') AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP)
