import tseslint from 'typescript-eslint'

/** What each folder may import: crds ← shared ← store, journal, process, backup ← operator, apiserver, edge ← embedded, test. */
const may = {
  crds: ['crds'],
  shared: ['crds', 'shared'],
  store: ['crds', 'shared', 'store'],
  journal: ['crds', 'shared', 'journal'],
  process: ['crds', 'shared', 'process'],
  backup: ['crds', 'shared', 'process', 'backup'],
  operator: ['crds', 'shared', 'store', 'journal', 'process', 'backup', 'operator'],
  apiserver: ['crds', 'shared', 'store', 'journal', 'process', 'apiserver'],
  edge: ['crds', 'shared', 'store', 'journal', 'process', 'edge'],
  // The types of the API's answers alone: see the rule below.
  dashboard: ['dashboard', 'apiserver'],
}
const folders = [
  'crds',
  'shared',
  'store',
  'journal',
  'process',
  'backup',
  'operator',
  'apiserver',
  'edge',
  'embedded',
  'test',
  'dashboard',
]

const boundaries = Object.entries(may).map(([folder, allowed]) => ({
  files: [`${folder}/**/*.ts`, `${folder}/**/*.tsx`],
  ignores: ['**/*.test.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: folders
          .filter((other) => !allowed.includes(other))
          .map((other) => ({
            regex: `^(\\.\\./)+${other}/`,
            message: `${folder}/ may import only ${allowed.join(', ')}: components meet through resources, never through each other's code.`,
          })),
      },
    ],
  },
}))

/** Members that pino gives each line itself: a field of the same name makes a JSON object with one key twice, of which a reader keeps one. */
const RESERVED_LOG_FIELDS = ['level', 'time', 'pid', 'hostname', 'msg']

const reservedLogFields = {
  selector: `CallExpression[callee.property.name=/^(trace|debug|info|warn|error|fatal|child)$/] > ObjectExpression.arguments > Property[key.name=/^(${RESERVED_LOG_FIELDS.join('|')})$/]`,
  message: `A log line has a member of this name already (${RESERVED_LOG_FIELDS.join(', ')}): give the field another one.`,
}

/** A literal within a literal only joins properties to one line. Elements and tests may do so. */
const unfoldedLiterals = {
  selector: 'ObjectExpression > SpreadElement > ObjectExpression',
  message: 'Write the properties without a literal around them.',
}

export default tseslint.config(
  { ignores: ['node_modules', '.mooring'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      complexity: ['error', 10],
      'max-depth': ['error', 3],
      'max-params': ['error', 4],
      eqeqeq: 'error',
      'no-console': 'error',
      'no-restricted-syntax': ['error', reservedLogFields],
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // A generic that only ties a kind to its resource reads better than a cast at each call.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['test/bench/**/*.ts', '**/*-cli.ts', 'crds/generate.ts', 'apiserver/openapi/generate-openapi.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['**/*.ts'],
    ignores: ['**/*.test.ts', 'test/**'],
    rules: { 'no-restricted-syntax': ['error', reservedLogFields, unfoldedLiterals] },
  },
  ...boundaries,
  {
    files: ['dashboard/**/*.ts', 'dashboard/**/*.tsx'],
    rules: {
      // Each part of a page that shows on a condition counts.
      complexity: ['error', 15],
      // A handler of an event may be asynchronous: it reports its own errors.
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false } }],
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '/apiserver/',
              allowTypeImports: true,
              message: 'The bundle has no code of the server: import types alone.',
            },
          ],
        },
      ],
    },
  },
)
