import { MooringError } from '../../shared/errors.ts'
import type { JournalReader } from '../port.ts'
import type { ReaderReply, ReaderRequest } from './messages.ts'

type Ask = (question: ReaderRequest) => Promise<ReaderReply>

/** Creates the reading side of a journal, which asks the reading thread. */
export function createSqliteReader(ask: Ask): Omit<JournalReader, 'follow'> {
  async function read<T extends ReaderReply['type']>(
    type: T,
    question: ReaderRequest,
  ): Promise<Extract<ReaderReply, { type: T }>> {
    const reply = await ask(question)
    if (isOf(type, reply)) return reply
    throw new MooringError('internal', `the journal answered ${question.type} with ${reply.type}`)
  }

  return {
    requests: async (filter, page) => (await read('requests', { type: 'requests', filter, page })).records,
    connections: async (filter, page) => (await read('connections', { type: 'connections', filter, page })).records,
    auditEntries: async (filter, page) => (await read('audit', { type: 'audit', filter, page })).records,
    audited: async (changes) => (await read('audited', { type: 'audited', changes })).changes,
    stats: async (tunnel, span) => (await read('stats', { type: 'stats', tunnel, span })).stats,
    openSessions: async () => (await read('connections', { type: 'openSessions' })).records,
    presence: async (tunnels) => (await read('presence', { type: 'presence', tunnels })).presence,
  }
}

function isOf<T extends ReaderReply['type']>(type: T, reply: ReaderReply): reply is Extract<ReaderReply, { type: T }> {
  return reply.type === type
}
