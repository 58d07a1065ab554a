import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, Instance } from '../../support/api/answers.ts'
import { clientOf, type FamilyClient } from '../../support/families/family-client.ts'

/** Pause before a request or login is repeated, in ms. */
const AGAIN_MS = 100
/** Time after which a request must have succeeded, in ms. */
const GIVE_UP_MS = 90_000
/** Maximum number of instances that a worker keeps. */
const MAXIMUM = 4

interface Creation {
  readonly identifier: string
  /** Id of the instance to copy. */
  readonly template: string | undefined
}

/** Instance of a worker, and what its database must have. */
export interface Life {
  /** Request that creates the instance; repeated, it returns the instance with its present password. */
  readonly creation: Creation
  instance: Instance
  /** Items that the server has acknowledged since the last reset. */
  kept: string[]
  /** Items whose addition was interrupted: they may be there. */
  doubtful: string[]
}

export interface WorkerDeps {
  readonly name: string
  readonly motor: string
  readonly region: string
  /** Calls the Mooring that is alive. Rejects when the connection is lost. */
  readonly call: (method: string, path: string, options?: object) => Promise<Answer>
  readonly isOver: () => boolean
}

/** Creates, fills, copies, rotates, resets and deletes instances until it is over. Repeats each request until its outcome is known. */
export class Worker {
  readonly #deps: WorkerDeps
  readonly #client: FamilyClient
  readonly lives: Life[] = []
  #count = 0

  constructor(deps: WorkerDeps) {
    this.#deps = deps
    this.#client = clientOf(deps.motor)
  }

  async run(): Promise<void> {
    while (!this.#deps.isOver()) await this.#step()
  }

  /** @returns how many steps were done */
  get count(): number {
    return this.#count
  }

  async #step(): Promise<void> {
    this.#count += 1
    const life = this.lives[randomInt(Math.max(this.lives.length, 1))]
    if (!life || (this.lives.length < MAXIMUM && randomInt(3) === 0)) return this.#create(life)
    const steps = [() => this.#rotate(life), () => this.#reset(life), () => this.#remove(life), () => this.#add(life)]
    await steps[randomInt(steps.length)]?.()
  }

  /** Repeats a request until it has one of the expected statuses. Conflicts are temporary: a template is in use. */
  async #request(expected: readonly number[], method: string, path: string, options?: object): Promise<Answer> {
    const deadline = performance.now() + GIVE_UP_MS
    for (;;) {
      const answer = await this.#deps.call(method, path, options).catch((error: unknown) => ({ lost: String(error) }))
      if ('status' in answer && expected.includes(answer.status)) return answer
      const isTemporary = 'lost' in answer || [202, 409, 503].includes(answer.status)
      if (!isTemporary || performance.now() > deadline) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
      await delay(AGAIN_MS)
    }
  }

  async #send({ identifier, template }: Creation): Promise<Instance> {
    const { motor, region } = this.#deps
    const body = { identifier, region, motor, ...(template !== undefined && { template }) }
    const answer = await this.#request([201], 'POST', '/v1/instances', { body, headers: { 'Idempotency-Key': identifier } })
    return answer.body.data.instance
  }

  async #create(like: Life | undefined): Promise<void> {
    const original = randomInt(2) === 0 ? like : undefined
    const creation = { identifier: `${this.#deps.name}-${this.#count}`, template: original?.instance.id }
    const instance = await this.#send(creation)
    this.lives.push({ creation, instance, kept: [...(original?.kept ?? [])], doubtful: [...(original?.doubtful ?? [])] })
  }

  async #rotate(life: Life): Promise<void> {
    const before = life.instance.password
    const answer = await this.#request([200, 202], 'POST', `/v1/instances/${life.instance.id}/password`)
    life.instance = answer.status === 200 ? answer.body.data.instance : await this.#send(life.creation)
    if (life.instance.password === before) throw new Error(`the password of ${life.creation.identifier} is still the former one`)
  }

  async #reset(life: Life): Promise<void> {
    // The reset of a copy needs its template, which may be deleted.
    if (life.creation.template !== undefined) return
    await this.#request([200], 'POST', `/v1/instances/${life.instance.id}/reset`)
    life.kept = []
    life.doubtful = []
  }

  async #remove(life: Life): Promise<void> {
    await this.#request([200, 404], 'DELETE', `/v1/instances/${life.instance.id}`)
    this.lives.splice(this.lives.indexOf(life), 1)
  }

  async #add(life: Life): Promise<void> {
    const item = `${this.#deps.name}-${this.#count}`
    const isDone = await this.#client.add(life.instance, item).then(
      () => true,
      () => false,
    )
    if (isDone) life.kept.push(item)
    else life.doubtful.push(item)
  }
}
