import { Buffer } from 'node:buffer'
import type { ChannelWriter } from '../channels/channel-end.ts'
import { dataHeader, Frame, frame } from './frames.ts'
import { encodeOpen } from './messages.ts'

const EMPTY = Buffer.alloc(0)

/** Creates a writer that encodes channel messages as frames. The bound address of a forward is the id of the requested session. */
export function createFrameWriter(send: (bytes: Buffer) => void): ChannelWriter {
  const number = (value: number): Buffer => {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  return {
    exchanging: false,
    channels: {
      forwardedTcpip(channel, window, _maxPacket, { boundAddr, remoteAddr, remotePort }) {
        const open = { window, session: boundAddr, origin: { address: remoteAddr, port: remotePort } }
        send(frame(Frame.open, channel, encodeOpen(open)))
      },
      channelData(channel, data) {
        send(dataHeader(channel, data.length))
        send(data)
      },
      channelEOF: (channel) => send(frame(Frame.end, channel)),
      channelClose: (channel) => send(frame(Frame.close, channel)),
      channelFailure: () => send(EMPTY),
      channelWindowAdjust: (channel, bytes) => send(frame(Frame.window, channel, number(bytes))),
    },
  }
}
