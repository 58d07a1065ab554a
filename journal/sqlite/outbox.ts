import type { WebhookOutbox } from '../webhooks.ts'
import type { ReaderReply, ReaderRequest, WriterReply, WriterRequest } from './messages.ts'

/** Asks the reading thread for a reply of one type. */
export type Read = <T extends ReaderReply['type']>(type: T, question: ReaderRequest) => Promise<Extract<ReaderReply, { type: T }>>

/** Creates the reading side of the outbox, which asks the reading thread. */
export function createOutboxReader(read: Read): Pick<WebhookOutbox, 'events' | 'list' | 'find' | 'due'> {
  return {
    events: async (limit) => (await read('connections', { type: 'outbox', question: { type: 'events', limit } })).records,
    list: async (webhook, page) =>
      (await read('deliveries', { type: 'outbox', question: { type: 'deliveries', webhook, page } })).deliveries,
    find: async (webhook, id) =>
      (await read('deliveries', { type: 'outbox', question: { type: 'delivery', webhook, id } })).deliveries[0],
    due: async (query) => (await read('due', { type: 'outbox', question: { type: 'due', query } })).due,
  }
}

export interface OutboxWriterDeps {
  /** Asks the writing thread. */
  readonly ask: (request: WriterRequest) => Promise<WriterReply>
  /** Called after a delivery was added. */
  readonly onWork: () => void
}

/** Creates the writing side of the outbox, which asks the writing thread. */
export function createOutboxWriter({
  ask,
  onWork,
}: OutboxWriterDeps): Pick<WebhookOutbox, 'add' | 'dispatch' | 'finish' | 'abandon' | 'forgive'> {
  return {
    async add(delivery) {
      await ask({ type: 'addDelivery', delivery })
      onWork()
    },
    async dispatch(events, deliveries) {
      await ask({ type: 'dispatch', events, deliveries })
    },
    async finish(attempt) {
      const reply = await ask({ type: 'finish', attempt })
      return reply.type === 'finished' ? reply.streak : undefined
    },
    async abandon(webhook, error, { manual }) {
      await ask({ type: 'abandon', webhook, error, manual })
    },
    async forgive(webhook) {
      await ask({ type: 'forgive', webhook })
    },
  }
}
