import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Motor, partsOf } from '../../../crds/motor.ts'
import type { Database } from '../api/answers.ts'
import { mariadbCommand, mongosh, runProgram } from '../families/programs.ts'
import { freePort } from '../free-port.ts'
import { scratch } from '../postgresql/disks.ts'
import { newKey } from '../edge/ssh2-client.ts'

/** SSH client of one person, with a key. */
export interface DatabaseUser extends AsyncDisposable {
  readonly publicKey: string
  /**
   * Runs the command of `connection.ssh` with another port on the left, as stock ssh does for a person. It ends with the disposal.
   * @param changes `password`: log in with it in place of the key; `command`: another command
   */
  open(database: Database, changes?: { readonly password?: string | undefined; readonly command?: string }): Promise<OpenTunnel>
}

export interface OpenTunnel extends AsyncDisposable {
  /** Port of this machine that leads to the database. */
  readonly port: number
  /** Returns the output so far. */
  readonly said: () => string
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>
}

/** Creates a person with a new key. */
export async function databaseUser(): Promise<DatabaseUser> {
  const directory = await mkdtemp(join(await scratch(), 'database-user-'))
  const { privateKey, publicKey } = newKey()
  const [identity, askpass] = [join(directory, 'key'), join(directory, 'askpass')]
  await writeFile(identity, privateKey, { mode: 0o600 })
  await writeFile(askpass, '#!/bin/sh\nprintf "%s\\n" "$PASSWORD"\n', { mode: 0o700 })
  const clients = new AsyncDisposableStack()
  let count = 0

  async function open({ connection }: Database, { password, command }: Parameters<DatabaseUser['open']>[1] = {}) {
    const ssh = connection?.ssh
    if (!ssh) throw new Error('the response has no SSH tunnel')
    const [knownHosts, port] = [join(directory, `known_hosts-${count++}`), await freePort()]
    await writeFile(knownHosts, ssh.knownHosts.map((line) => `${line}\n`).join(''))
    const how =
      password === undefined
        ? [`IdentityFile=${identity}`, 'BatchMode=yes']
        : ['PreferredAuthentications=password', 'NumberOfPasswordPrompts=1']
    const options = [
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      'StrictHostKeyChecking=yes',
      ...how,
      `UserKnownHostsFile=${knownHosts}`,
    ]
    const [program = '', ...args] = (command ?? ssh.command).replace(/-L \d+:/, `-L ${port}:`).split(' ')
    const child = spawn(program, ['-F', 'none', '-v', ...options.flatMap((option) => ['-o', option]), ...args], {
      env: { PATH: process.env.PATH, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', PASSWORD: password },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    const listening = Promise.withResolvers<undefined>()
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes('Entering interactive session')) listening.resolve(undefined)
      })
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    await Promise.race([listening.promise, exited])
    return clients.use({
      port,
      exited,
      said: () => text,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        await exited
      },
    })
  }

  return {
    publicKey,
    open,
    async [Symbol.asyncDispose]() {
      await clients.disposeAsync()
      await rm(directory, { recursive: true })
    },
  }
}

/**
 * Runs the engine's stock client through a tunnel and returns the name of the logged-in user as the server reports it. Where the server
 * requires TLS, the client verifies its certificate for `localhost`.
 */
export async function userThrough(database: Database, port: number): Promise<string> {
  const { connection, engine } = database
  if (!connection) throw new Error('the response has no connection')
  const { user, password, database: name, ca, internalHost } = connection
  const directory = await mkdtemp(join(await scratch(), 'stock-client-'))
  const caFile = join(directory, 'ca.crt')
  await writeFile(caFile, ca ?? '')
  const parts = partsOf(Motor.parse(engine))
  // In embedded mode, MySQL and MongoDB have no TLS on loopback (docs/dedicated.md, "SSH tunnel").
  const hasTls = internalHost !== null || ['postgresql', 'mariadb'].includes(parts.family)
  try {
    switch (parts.family) {
      case 'postgresql': {
        const tls = hasTls ? `sslmode=verify-full sslrootcert=${caFile}` : ''
        const target = `host=localhost hostaddr=127.0.0.1 ${tls} port=${port} user=${user} password=${password} dbname=${name} connect_timeout=10`
        return (await runProgram(['psql', '-XtA', '-c', 'SELECT current_user', target])).trim()
      }
      case 'mongodb': {
        const tls = hasTls ? `&tls=true&tlsCAFile=${caFile}` : ''
        const uri = `mongodb://${user}:${password}@127.0.0.1:${port}/${name}?directConnection=true${tls}`
        const statement = 'print(db.runCommand({connectionStatus: 1}).authInfo.authenticatedUsers[0].user)'
        return (await runProgram([...(await mongosh()), uri, '--eval', statement])).trim()
      }
      default: {
        const tls = hasTls ? [`--ssl-ca=${caFile}`, '--ssl-verify-server-cert'] : ['--ssl']
        const to = ['-hlocalhost', '--protocol=tcp', `-P${port}`, `-u${user}`, `-p${password}`, '-N', '-B', ...tls, name]
        return (await runProgram([...(await mariadbCommand()), ...to], "SELECT SUBSTRING_INDEX(USER(), '@', 1);")).trim()
      }
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}
