import type { JsonObject } from './openapi-schemas.ts'

interface Tag {
  readonly name: string
  readonly description: string
  /** Paths of its calls; the first tag that has a path gets it. */
  readonly paths: RegExp
}

/** Groups of calls at `/docs`, in the order in which they are shown. */
const TAGS: readonly Tag[] = [
  {
    name: 'Databases',
    description:
      'Databases on shared servers, for prototypes and pipelines: one call creates one and answers with its connection details. ' +
      '`PUT /v1/instances/by-identifier/{identifier}` gives a pipeline the same database however often it asks.',
    paths: /^\/v1\/instances/,
  },
  {
    name: 'Dedicated databases',
    description: 'Databases with servers of their own: what they can be made of, and their prices.',
    paths: /^\/v1\/(databases|engines)/,
  },
  { name: 'Regions', description: 'Where databases and tunnels run, and what each region has.', paths: /^\/v1\/regions/ },
  {
    name: 'Tunnel logs',
    description: 'What went through a tunnel, and which clients connected to it.',
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
    description: 'Who created, changed and deleted what, and who read credentials. Entries outlive what they are about.',
    paths: /\/audit$/,
  },
  { name: 'Members', description: 'Who has which role in a namespace: viewer, editor or admin.', paths: /\/members/ },
  { name: 'API tokens', description: 'Tokens for programs, each bound to one namespace and one role.', paths: /\/api-tokens/ },
  {
    name: 'Organizations',
    description: 'Organizations and their namespaces, which hold everything else.',
    paths: /^\/v1\/organizations/,
  },
  { name: 'You', description: 'Who the caller is, and where they have a role.', paths: /^\/v1\/me$/ },
]

/** The group of a path template; its first segment after the version where none has it. */
export function tagOf(path: string): string {
  return TAGS.find(({ paths }) => paths.test(path))?.name ?? path.split('/')[2] ?? path
}

/** The tags of a document of these paths. */
export function tagsOf(paths: readonly string[]): readonly JsonObject[] {
  const used = new Set(paths.map(tagOf))
  const known = TAGS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }))
  return [
    ...known,
    ...[...used].filter((name) => !TAGS.some((tag) => tag.name === name)).map((name) => ({ name, description: name })),
  ]
}
