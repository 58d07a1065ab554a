import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, child, listening, type Program } from './programs.ts'

/** Sizes of the large file and of the small response, in bytes. */
export const LARGE_BYTES = 64 * 1024 * 1024
const SMALL = 'hello, this is the backend\n'

/** Starts an nginx with one worker and these servers. */
export async function startNginx(
  nginx: Program,
  directory: string,
  { port, http }: { port: number; http: string },
): Promise<Child> {
  await mkdir(directory, { recursive: true })
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(directory, name)};`)
    .join('\n  ')
  const file = join(directory, 'nginx.conf')
  await writeFile(
    file,
    `daemon off;
worker_processes 1;
pid ${join(directory, 'pid')};
error_log ${join(directory, 'error.log')};
events { worker_connections 4096; }
http {
  ${paths}
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 10000000;
  keepalive_timeout 300s;
  ${http}
}
`,
  )
  const started = child([nginx.path, '-e', join(directory, 'error.log'), '-c', file, '-p', directory], { env: nginx.env })
  await listening(port, started)
  return started
}

/** Starts the backend of both sides: a small response, and a large file. */
export async function startOrigin(nginx: Program, directory: string, port: number): Promise<Child> {
  await mkdir(directory, { recursive: true, mode: 0o755 })
  await writeFile(join(directory, 'large'), Buffer.alloc(LARGE_BYTES, 'x'), { mode: 0o644 })
  const server = `server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /large { root ${directory}; }
    location / { default_type text/plain; return 200 ${JSON.stringify(SMALL)}; }
  }`
  return startNginx(nginx, directory, { port, http: server })
}

interface Front {
  readonly http: number
  readonly https: number
  /** Ports on which sshd listens for its clients, one for each tunnel. */
  readonly tunnels: readonly number[]
  readonly certificate: { readonly key: string; readonly cert: string }
}

/** Starts nginx in front of sshd, as a user would configure it: one name for each tunnel, with keep-alive connections. */
export async function startFront(nginx: Program, directory: string, front: Front): Promise<Child> {
  await mkdir(directory, { recursive: true })
  const [key, cert] = [join(directory, 'tls.key'), join(directory, 'tls.crt')]
  await copyFile(front.certificate.key, key)
  await copyFile(front.certificate.cert, cert)
  const servers = front.tunnels.map(
    (port, index) => `upstream tunnel${index} { server 127.0.0.1:${port}; keepalive 256; keepalive_requests 10000000; }
  server {
    listen 127.0.0.1:${front.http};
    listen 127.0.0.1:${front.https} ssl http2;
    server_name tunnel${index}.test;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    location / {
      proxy_pass http://tunnel${index};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }`,
  )
  return startNginx(nginx, directory, { port: front.http, http: `ssl_session_cache shared:s:10m;\n  ${servers.join('\n  ')}` })
}
