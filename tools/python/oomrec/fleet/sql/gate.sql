-- Signatures of release $head that release $base does not have.
SELECT head.signature AS signature, MIN(head.title) AS title, COUNT(*) AS deaths
FROM deaths AS head
LEFT JOIN (SELECT DISTINCT signature FROM deaths WHERE release = $base AND kind IN ('death', 'failure')) AS base
  ON head.signature = base.signature
WHERE head.release = $head AND head.kind IN ('death', 'failure') AND COALESCE(head.episode_role, 'root') = 'root'
  AND head.signature IS NOT NULL AND base.signature IS NULL
GROUP BY 1
ORDER BY deaths DESC, 1
