import type { Document, MongoClient } from 'mongodb'
import { beforeAll, describe, expect, test } from 'vitest'
import { mongodbBench } from '../../../support/mongodb/engine.ts'
import { SERIES } from '../../../support/mongodb/mongod.ts'

/** Code of the server for a command without privilege. */
const DENIED = [13]
/** Also the code of a command that this version does not have, or not outside of tests. */
const UNKNOWN = [13, 59]
/** Code of syntax that this version does not have. */
const PARSED = [9]
/** Code of server-side JavaScript that is switched off. */
const SCRIPTING = [31_264]

type Attempt = readonly [attempt: string, database: string, command: Document, codes?: readonly number[]]

const ID = { $oid: '0123456789abcdef01234567' }

const REFUSED: readonly Attempt[] = [
  // Other databases.
  ['read a neighbour', 'victim', { find: 'secret' }],
  ['count the documents of a neighbour', 'victim', { count: 'secret' }],
  ['write to a neighbour', 'victim', { insert: 'secret', documents: [{}] }],
  ['list the collections of a neighbour', 'victim', { listCollections: 1 }],
  ['drop a neighbour', 'victim', { dropDatabase: 1 }],
  ['read the size of a neighbour', 'victim', { dbStats: 1 }],
  ['make a database', 'another', { create: 'c' }],
  ['write to admin', 'admin', { insert: 'c', documents: [{}] }],
  ['write to config', 'config', { insert: 'c', documents: [{}] }],
  ['write to local', 'local', { insert: 'c', documents: [{}] }],
  ['read the oplog', 'local', { find: 'oplog.rs' }],
  ['read the log of starts, with its paths', 'local', { find: 'startup_log' }],
  ['read the sessions of all tenants', 'config', { find: 'system.sessions' }],
  ['read the transactions of all tenants', 'config', { find: 'transactions' }],
  [
    'copy a collection to a neighbour with $out',
    'mallory',
    { aggregate: 'own', pipeline: [{ $out: { db: 'victim', coll: 'c' } }], cursor: {} },
  ],
  [
    'copy a collection to a neighbour with $merge',
    'mallory',
    { aggregate: 'own', pipeline: [{ $merge: { into: { db: 'victim', coll: 'secret' } } }], cursor: {} },
  ],
  [
    'write users with $merge',
    'mallory',
    { aggregate: 'own', pipeline: [{ $merge: { into: { db: 'admin', coll: 'system.users' } } }], cursor: {} },
  ],
  [
    'read a neighbour with $lookup',
    'mallory',
    {
      aggregate: 'own',
      pipeline: [{ $lookup: { from: { db: 'victim', coll: 'secret' }, pipeline: [], as: 'all' } }],
      cursor: {},
    },
    PARSED,
  ],
  ['move a collection to a neighbour', 'admin', { renameCollection: 'mallory.own', to: 'victim.own' }],
  ['take a collection of a neighbour', 'admin', { renameCollection: 'victim.secret', to: 'mallory.secret' }],
  // Users and roles.
  ['list all users', 'admin', { usersInfo: { forAllDBs: true } }],
  ['list the users of its database', 'mallory', { usersInfo: 1 }],
  ['see the login of a neighbour', 'mallory', { usersInfo: { user: 'victim', db: 'victim' } }],
  ['see the administrator', 'admin', { usersInfo: 'mooring' }],
  ['list all roles', 'admin', { rolesInfo: 1, showPrivileges: true }],
  ['read the stored users', 'admin', { find: 'system.users' }],
  ['make a user', 'mallory', { createUser: 'minion', pwd: 'x', roles: [] }],
  ['make a role', 'mallory', { createRole: 'minion', privileges: [], roles: [] }],
  ['change its password', 'mallory', { updateUser: 'mallory', pwd: 'x' }],
  ['lift its limit of connections', 'mallory', { updateUser: 'mallory', customData: { connections: 1_000 } }],
  ['grant itself a role', 'mallory', { grantRolesToUser: 'mallory', roles: ['dbOwner'] }],
  [
    'grant its role a privilege',
    'mallory',
    { grantPrivilegesToRole: 'tenant', privileges: [{ resource: { db: 'victim', collection: '' }, actions: ['find'] }] },
  ],
  ['drop its login', 'mallory', { dropUser: 'mallory' }],
  ['set the password of a neighbour', 'victim', { updateUser: 'victim', pwd: 'x' }],
  ['empty the cache of users', 'admin', { invalidateUserCache: 1 }],
  // Profiler and log: the thresholds are those of the whole server.
  ['switch on the profiler', 'mallory', { profile: 2 }],
  ['change the threshold of the slow query log', 'mallory', { profile: 0, slowms: 0 }],
  ['read the state of the profiler', 'mallory', { profile: -1 }],
  ['read the log', 'admin', { getLog: 'global' }],
  ['rotate the log', 'admin', { logRotate: 1 }],
  ['write to the log', 'admin', { logMessage: 'hello' }, UNKNOWN],
  // Commands that read or rewrite whole collections.
  ['validate a collection', 'mallory', { validate: 'own', full: true }],
  ['compact a collection', 'mallory', { compact: 'own', force: true }],
  // Operations of others.
  ['list the operations of all', 'admin', { aggregate: 1, pipeline: [{ $currentOp: { allUsers: true } }], cursor: {} }],
  ['list the operations of all by command', 'admin', { currentOp: 1 }],
  [
    'list the sessions of all',
    'config',
    { aggregate: 'system.sessions', pipeline: [{ $listSessions: { allUsers: true } }], cursor: {} },
  ],
  [
    'list the cached sessions of all',
    'admin',
    { aggregate: 1, pipeline: [{ $listLocalSessions: { allUsers: true } }], cursor: {} },
  ],
  ['kill an operation of the administrator', 'admin', { killOp: 1, op: 1 }],
  ['kill the sessions of all', 'admin', { killAllSessions: [] }],
  ['kill the sessions of a neighbour', 'admin', { killAllSessions: [{ user: 'victim', db: 'victim' }] }],
  ['kill sessions by pattern', 'admin', { killAllSessionsByPattern: [] }],
  ['see usage by collection', 'admin', { top: 1 }],
  ['see locks', 'admin', { lockInfo: 1 }],
  // Change streams of more than its database.
  [
    'watch the whole deployment',
    'admin',
    { aggregate: 1, pipeline: [{ $changeStream: { allChangesForCluster: true } }], cursor: {} },
  ],
  ['watch a neighbour', 'victim', { aggregate: 1, pipeline: [{ $changeStream: {} }], cursor: {} }],
  ['watch a collection of a neighbour', 'victim', { aggregate: 'secret', pipeline: [{ $changeStream: {} }], cursor: {} }],
  // The server.
  ['see the status of the server', 'admin', { serverStatus: 1 }],
  ['see the machine', 'admin', { hostInfo: 1 }],
  ['see the command line', 'admin', { getCmdLineOpts: 1 }],
  ['read parameters', 'admin', { getParameter: '*' }],
  ['set a parameter', 'admin', { setParameter: 1, notablescan: true }],
  ['set a parameter of the cluster', 'admin', { setClusterParameter: { changeStreamOptions: {} } }, UNKNOWN],
  ['set the default write concern', 'admin', { setDefaultRWConcern: 1, defaultWriteConcern: { w: 1 } }],
  ['shut the server down', 'admin', { shutdown: 1, force: true }],
  ['lock the server', 'admin', { fsync: 1, lock: true }],
  ['step down', 'admin', { replSetStepDown: 1, force: true }],
  ['see the replica set', 'admin', { replSetGetStatus: 1 }],
  ['change the replica set', 'admin', { replSetReconfig: {}, force: true }],
  ['resize the oplog', 'admin', { replSetResizeOplog: 1, size: 990 }],
  ['write to the oplog', 'admin', { appendOplogNote: 1, data: {} }],
  ['apply operations', 'admin', { applyOps: [{ op: 'i', ns: 'victim.secret', o: { _id: ID } }] }],
  ['change the compatibility version', 'admin', { setFeatureCompatibilityVersion: '5.0' }],
  ['set a fail point', 'admin', { configureFailPoint: 'failCommand', mode: 'alwaysOn' }, UNKNOWN],
  ['replace the certificate', 'admin', { rotateCertificates: 1 }],
  ['end connections to other hosts', 'admin', { dropConnections: 1, hostAndPort: ['a:1'] }],
  ['clone a collection of another server', 'mallory', { cloneCollection: 'mallory.own', from: 'a:1' }, UNKNOWN],
  // Server-side JavaScript.
  ['run JavaScript in a query', 'mallory', { find: 'own', filter: { $where: 'true' } }, [2, 6_108_304]],
  [
    'run JavaScript in an aggregation',
    'mallory',
    {
      aggregate: 'own',
      pipeline: [{ $project: { x: { $function: { body: 'function () {}', args: [], lang: 'js' } } } }],
      cursor: {},
    },
    SCRIPTING,
  ],
  [
    'run JavaScript in an accumulator',
    'mallory',
    {
      aggregate: 'own',
      pipeline: [
        {
          $group: {
            _id: null,
            x: {
              $accumulator: {
                ...{ init: 'function () {}', accumulate: 'function () {}', accumulateArgs: [], merge: 'function () {}' },
                lang: 'js',
              },
            },
          },
        },
      ],
      cursor: {},
    },
    SCRIPTING,
  ],
  [
    'run JavaScript in a mapReduce',
    'mallory',
    { mapReduce: 'own', map: 'function () {}', reduce: 'function () {}', out: { inline: 1 } },
    SCRIPTING,
  ],
  ['run JavaScript by eval', 'mallory', { eval: 'function () {}' }, UNKNOWN],
]

describe.each(SERIES)('MongoDB for %s: a tenant', (series) => {
  const bench = mongodbBench(series)
  let client: MongoClient

  beforeAll(async () => {
    const [mallory, victim] = [await bench.tenant('mallory'), await bench.tenant('victim')]
    client = await bench.as(mallory)
    await client.db('mallory').collection('own').insertOne({ n: 1 })
    await (await bench.as(victim)).db('victim').collection('secret').insertOne({ n: 1 })
  })

  const attempts = REFUSED.map(([attempt, database, command, codes = DENIED]) => [attempt, { database, command, codes }] as const)

  test.each(attempts)('cannot %s', async (_, { database, command, codes }) => {
    const result = await client
      .db(database)
      .command(command)
      .catch((error: unknown) => error)
    expect(result).toBeInstanceOf(Error)
    expect(codes).toContain((result as { code?: unknown }).code)
  })

  test('has no other privileges after a take-over from a version that gave more', async () => {
    const roles = (await bench.server.client()).db('admin').collection<{ privileges: { actions: string[] }[] }>('system.roles')
    const before = await roles.findOne({ role: 'tenant', db: 'mallory' })
    await roles.updateOne(
      { role: 'tenant', db: 'mallory' },
      { $push: { 'privileges.0.actions': { $each: ['validate', 'compact'] } } },
    )
    const validate = () => client.db('mallory').command({ validate: 'own' })
    expect(await validate()).toMatchObject({ ok: 1 })
    await bench.admin.harden()
    await expect(validate()).rejects.toMatchObject({ code: 13 })
    expect(await roles.findOne({ role: 'tenant', db: 'mallory' })).toEqual(before)
  })

  test('sees only its own database', async () => {
    const { databases } = (await client.db('admin').command({ listDatabases: 1 })) as { databases: { name: string }[] }
    expect(databases.map(({ name }) => name)).toEqual(['mallory'])
  })

  test('sees only its own operations', async () => {
    const found = await client
      .db('admin')
      .aggregate([{ $currentOp: { idleConnections: true } }])
      .toArray()
    expect(new Set(found.map(({ effectiveUsers }) => (effectiveUsers as { user: string }[])[0]?.user))).toEqual(
      new Set(['mallory']),
    )
  })

  test('cannot log in to another database, as the administrator, or as the internal user', async () => {
    for (const [user, database] of [
      ['mallory', 'victim'],
      ['mallory', 'admin'],
      ['mooring', 'admin'],
      ['__system', 'local'],
    ] as const) {
      const login = bench.server.client({ user, password: 'password-of-mallory', database })
      await expect(login).rejects.toThrow(expect.objectContaining({ code: 18 }) as Error)
    }
  })

  test('and a client without a login reads and creates nothing, on the server’s own machine too', async () => {
    await using nameless = await bench.server.nameless()
    for (const [database, command] of [
      ['admin', { createUser: 'me', pwd: 'x', roles: ['root'] }],
      ['admin', { listDatabases: 1 }],
      ['victim', { find: 'secret' }],
      ['admin', { getParameter: '*' }],
    ] as const) {
      await expect(nameless.db(database).command(command)).rejects.toThrow(expect.objectContaining({ code: 13 }) as Error)
    }
  })
})
