import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dataHeader, Frame, frame, FrameError, FrameParser } from './frames.ts'

interface Said {
  readonly type: Frame
  readonly channel: number
  readonly payload: string
}

/** Events of a parser for these chunks; consecutive data parts of a channel are joined. */
function read(chunks: readonly Uint8Array[]): readonly Said[] {
  const said: Said[] = []
  const parser = new FrameParser({
    control: (type, channel, payload) => void said.push({ type, channel, payload: payload.toString('hex') }),
    data(channel, part) {
      const last = said.at(-1)
      if (last?.type === Frame.data && last.channel === channel) {
        said[said.length - 1] = { ...last, payload: last.payload + part.toString('hex') }
      } else said.push({ type: Frame.data, channel, payload: part.toString('hex') })
    },
  })
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  return said
}

const channel = fc.integer({ min: 0, max: 0xffff_ffff })
const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength }).map((array) => Buffer.from(array))
const someFrame = fc.oneof(
  fc.tuple(fc.constantFrom(Frame.ping, Frame.pong, Frame.end, Frame.close), channel, fc.constant(Buffer.alloc(0))),
  fc.tuple(fc.constant(Frame.open), channel, bytes(8, 512)),
  fc.tuple(fc.constant(Frame.notice), channel, bytes(3, 500)),
  fc.tuple(fc.constant(Frame.opened), channel, bytes(8, 8)),
  fc.tuple(fc.constant(Frame.sessions), channel, bytes(2, 300)),
  fc.tuple(fc.constant(Frame.data), channel, bytes(1, 600)),
)

const cut = (whole: Buffer, at: readonly number[]): Buffer[] => {
  const edges = [0, ...at.map((place) => place % (whole.length + 1)).sort((a, b) => a - b), whole.length]
  return edges.slice(1).map((end, index) => whole.subarray(edges[index], end))
}

test('frames are parsed as sent, wherever their bytes are split', () => {
  fc.assert(
    fc.property(fc.array(someFrame, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 20 }), (frames, at) => {
      const whole = Buffer.concat(
        frames.map(([type, number, payload]) =>
          type === Frame.data ? Buffer.concat([dataHeader(number, payload.length), payload]) : frame(type, number, payload),
        ),
      )
      expect(read(cut(whole, at))).toEqual(read([whole]))
      const control = read([whole]).filter(({ type }) => type !== Frame.data)
      expect(control).toEqual(
        frames.flatMap(([type, number, payload]) =>
          type === Frame.data ? [] : [{ type, channel: number, payload: payload.toString('hex') }],
        ),
      )
    }),
  )
})

test('invalid bytes cause a protocol error and no other error', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 8 }), (chunks) => {
      try {
        read(chunks)
      } catch (error) {
        expect(error).toBeInstanceOf(FrameError)
      }
    }),
  )
})

test.each([
  { does: 'an unknown type', bytes: [99, 0, 0, 0, 0, 0, 0, 0] },
  { does: 'a ping with a payload', bytes: [Frame.ping, 0, 0, 1, 0, 0, 0, 0] },
  { does: 'data without any', bytes: [Frame.data, 0, 0, 0, 0, 0, 0, 0] },
  { does: 'more data than a frame may have', bytes: [Frame.data, 1, 0, 1, 0, 0, 0, 0] },
  { does: 'a hello of a megabyte', bytes: [Frame.hello, 16, 0, 0, 0, 0, 0, 0] },
])('$does is rejected at its header', ({ bytes: header }) => {
  expect(() => read([Buffer.from(header)])).toThrow(FrameError)
})
