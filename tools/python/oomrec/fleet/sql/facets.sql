-- Of each of $signatures: the five most frequent values of each of $facets.
WITH chosen AS (
  SELECT COALESCE(signature, 'unknown') AS signature, service, release, host, verdict, program
  FROM deaths
  WHERE kind IN ('death', 'failure') AND COALESCE(episode_role, 'root') = 'root' AND time >= CAST($since AS TIMESTAMP) AND time < CAST($until AS TIMESTAMP) AND array_contains($signatures, COALESCE(signature, 'unknown'))
), counted AS (
  SELECT signature, 'service' AS facet, service AS value, COUNT(*) AS deaths FROM chosen WHERE array_contains($facets, 'service') GROUP BY signature, service
  UNION ALL
  SELECT signature, 'release' AS facet, release AS value, COUNT(*) AS deaths FROM chosen WHERE array_contains($facets, 'release') GROUP BY signature, release
  UNION ALL
  SELECT signature, 'host' AS facet, host AS value, COUNT(*) AS deaths FROM chosen WHERE array_contains($facets, 'host') GROUP BY signature, host
  UNION ALL
  SELECT signature, 'verdict' AS facet, verdict AS value, COUNT(*) AS deaths FROM chosen WHERE array_contains($facets, 'verdict') GROUP BY signature, verdict
  UNION ALL
  SELECT signature, 'program' AS facet, program AS value, COUNT(*) AS deaths FROM chosen WHERE array_contains($facets, 'program') GROUP BY signature, program
), placed AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY signature, facet ORDER BY deaths DESC, value) AS place,
    COUNT(*) OVER (PARTITION BY signature, facet) AS different
  FROM counted
  WHERE value IS NOT NULL
)
SELECT signature, facet, value, deaths, place, different
FROM placed
WHERE place <= 5
ORDER BY signature, facet, place
