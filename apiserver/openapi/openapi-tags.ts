import type { JsonObject } from './openapi-schemas.ts'

interface Tag {
  readonly name: string
  readonly description: string
  /** Paths of the tag's operations; the first matching tag is used. */
  readonly paths: RegExp
}

/** Groups of operations at `/docs`, in display order. */
const TAGS: readonly Tag[] = [
  {
    name: 'Databases',
    description:
      'Databases on shared servers, for prototypes and pipelines: one request creates a database and answers with its connection details. ' +
      '`PUT /v1/instances/by-identifier/{identifier}` returns the same database to every run of a pipeline.',
    paths: /^\/v1\/instances/,
  },
  {
    name: 'Dedicated databases',
    description: 'Databases with their own servers: available engines, plans and prices.',
    paths: /^\/v1\/(databases|engines)/,
  },
  { name: 'Regions', description: 'Locations of databases and tunnels, with the engines of each.', paths: /^\/v1\/regions/ },
  {
    name: 'Tunnel logs',
    description: 'Requests through a tunnel, statistics, and the connections of its SSH clients.',
    paths: /\/tunnels\/\{tunnel\}\/(requests|connections|stats)/,
  },
  {
    name: 'Tunnels',
    description:
      'Permanent public URLs for a port of your machine, served over SSH, with their settings, passwords and certificates.',
    paths: /\/tunnels/,
  },
  {
    name: 'Audit log',
    description: 'Creations, changes, deletions and reads of credentials, with their actors. Entries outlive their resources.',
    paths: /\/audit$/,
  },
  { name: 'Members', description: 'Users with a role in a namespace: viewer, editor or admin.', paths: /\/members/ },
  { name: 'API tokens', description: 'Tokens for programs, each bound to one namespace and one role.', paths: /\/api-tokens/ },
  {
    name: 'Organizations',
    description: 'Organizations and their namespaces, which contain all other resources.',
    paths: /^\/v1\/organizations/,
  },
  { name: 'You', description: 'User name, groups and roles of the caller.', paths: /^\/v1\/me$/ },
]

/** Returns the tag of a path template; without a matching tag, the first segment after the version. */
export function tagOf(path: string): string {
  return TAGS.find(({ paths }) => paths.test(path))?.name ?? path.split('/')[2] ?? path
}

/** Returns the tags of a document with these paths. */
export function tagsOf(paths: readonly string[]): readonly JsonObject[] {
  const used = new Set(paths.map(tagOf))
  const known = TAGS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }))
  return [
    ...known,
    ...[...used].filter((name) => !TAGS.some((tag) => tag.name === name)).map((name) => ({ name, description: name })),
  ]
}
