import CLinux
import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// Why a request through the gateway has no response.
enum WarmError: Error, Equatable, CustomStringConvertible {
    case notConnected(Errno)
    case notSecure(TLSError)
    case broken(Errno)
    case closed
    case timedOut
    case malformed(String)

    /// The kind of error, by which they are counted.
    var kind: String {
        switch self {
        case .notConnected: "cannot connect"
        case .notSecure: "no secure connection"
        case .broken, .closed: "connection lost"
        case .timedOut: "timed out"
        case .malformed: "invalid response"
        }
    }

    var description: String {
        switch self {
        case .notConnected(let error): "cannot connect to the gateway: \(error)"
        case .notSecure(let error):
            "no secure connection to the gateway: \(error.text(of: "gateway"))"
        case .broken(let error): "the connection to the gateway broke: \(error)"
        case .closed: "the gateway closed the connection"
        case .timedOut: "no response in time"
        case .malformed(let reason): "the response is invalid: \(reason)"
        }
    }
}

/// What a response says about the cache.
struct WarmResponse: Equatable {
    var status: UInt16
    /// The member of Cache-Status that is the gateway's; `nil` if there is none.
    var cacheStatus: String?
    /// The reason in Proxy-Status, if the gateway answers in place of a server.
    var reason: String?
    /// Bytes of content.
    var bytes: UInt64 = 0
}

/// A connection to a listener of the gateway, for one request after another, on a thread that may
/// wait. The client library asks for https URLs by CONNECT, which the cache does not see; a forward
/// listener takes them as they are.
struct WarmConnection: ~Copyable {
    private let target: WarmTarget
    private let timeout: Int64
    private var descriptor: Int32 = -1
    /// TLS over the socket; `nil` without TLS.
    private var tls: TLSClientConnection?
    private var received: [UInt8] = []

    /// - Parameter timeout: for each request, in milliseconds.
    init(to target: WarmTarget, timeout: Int64) {
        self.target = target
        self.timeout = timeout
    }

    deinit {
        if let tls { _ = tls.shutdown() }
        if descriptor >= 0 { Descriptors.close(descriptor) }
    }

    /// Sends a request's head and reads the response to its end.
    mutating func get(
        _ head: [UInt8], keeping content: ((UnsafeRawBufferPointer) -> Void)? = nil
    ) throws(WarmError) -> WarmResponse {
        let wasOpen = descriptor >= 0
        do throws(WarmError) {
            return try attempt(head, content)
        } catch {
            close()
            // The gateway may have ended a connection that was idle; GET may be sent again.
            guard wasOpen, error == .closed || error.kind == "connection lost" else { throw error }
        }
        do throws(WarmError) {
            return try attempt(head, content)
        } catch {
            close()
            throw error
        }
    }

    /// Connects, without a request.
    mutating func open() throws(WarmError) {
        try connect(until: Clock.monotonicMilliseconds() + timeout)
    }

    private mutating func close() {
        if let tls { _ = tls.shutdown() }
        tls = nil
        if descriptor >= 0 { Descriptors.close(descriptor) }
        descriptor = -1
        received = []
    }

    private mutating func attempt(
        _ head: [UInt8], _ content: ((UnsafeRawBufferPointer) -> Void)?
    ) throws(WarmError) -> WarmResponse {
        let end = Clock.monotonicMilliseconds() + timeout
        if descriptor < 0 { try connect(until: end) }
        try send(head, until: end)
        var parsed = ResponseHead()
        repeat { try readHead(into: &parsed, until: end) } while parsed.isInterim
        var response = WarmResponse(status: parsed.status)
        response.cacheStatus = text(of: "cache-status", in: parsed)
        response.reason = text(of: "proxy-status", in: parsed)
        received.removeFirst(parsed.length)
        var decoder = BodyDecoder(parsed.framing, isUserAgent: true)
        try readContent(&decoder, content, until: end)
        response.bytes = decoder.contentBytes
        if !parsed.keepAlive { close() }
        return response
    }

    private mutating func readHead(
        into head: inout ResponseHead, until end: Int64
    ) throws(WarmError) {
        if head.isInterim, head.length > 0 { received.removeFirst(head.length) }
        head = ResponseHead()
        while true {
            var parser = ResponseHeadParser()
            let progress: ParseProgress
            do throws(WireError) {
                progress = try parser.parse(
                    received.span, answering: ResponseContext(method: .get, isUserAgent: true),
                    into: &head)
            } catch {
                throw .malformed("\(error)")
            }
            switch progress {
            case .complete: return
            case .bareLines: throw .malformed("its lines end in bare line feeds")
            case .needMore:
                let more = try receive(until: end)
                guard !more.isEmpty else { throw .closed }
                received += more
            }
        }
    }

    private mutating func readContent(
        _ decoder: inout BodyDecoder, _ content: ((UnsafeRawBufferPointer) -> Void)?,
        until end: Int64
    ) throws(WarmError) {
        while !decoder.isComplete {
            let step: BodyStep
            do throws(WireError) {
                step = try decoder.decode(received.span)
            } catch {
                throw .malformed("\(error)")
            }
            switch step {
            case .data(let offset, let count, let consumed):
                if let content {
                    received.withUnsafeBytes {
                        content(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
                    }
                }
                received.removeFirst(consumed)
            case .end(let consumed): received.removeFirst(consumed)
            case .needMore(let consumed):
                received.removeFirst(consumed)
                let more = try receive(until: end)
                if more.isEmpty {
                    do throws(WireError) { try decoder.endOfInput() } catch { throw .closed }
                }
                received += more
            }
        }
    }

    private func text(of name: String, in head: ResponseHead) -> String? {
        for field in head.fields {
            let written = received.span.text(at: field.name)
            if written.lowercasedASCII == name { return received.span.text(at: field.value) }
        }
        return nil
    }

    // MARK: The socket

    private mutating func connect(until end: Int64) throws(WarmError) {
        do throws(Errno) {
            descriptor = try Sockets.connect(to: target.endpoint)
        } catch {
            throw .notConnected(error)
        }
        try wait(for: POLLOUT, until: end)
        if let error = Sockets.connectionError(descriptor) { throw .notConnected(error) }
        guard let security = target.security else { return }
        do throws(TLSError) {
            tls = try TLSClientConnection(
                context: security.context, fileDescriptor: descriptor, host: security.host,
                port: target.endpoint.port, now: Clock.wallSeconds())
        } catch {
            throw .notSecure(error)
        }
        try shakeHands(until: end)
    }

    private func send(_ bytes: [UInt8], until end: Int64) throws(WarmError) {
        if let tls { return try send(bytes, by: tls, until: end) }
        try waiting(until: end) { (socket) throws(SocketWaitError) in try socket.send(bytes) }
    }

    private func receive(until end: Int64) throws(WarmError) -> [UInt8] {
        if let tls { return try receive(by: tls, until: end) }
        return try waiting(until: end) { (socket) throws(SocketWaitError) in
            try socket.receive()
        }
    }

    private func wait(for event: Int32, until end: Int64) throws(WarmError) {
        try waiting(until: end) { (socket) throws(SocketWaitError) in try socket.wait(for: event) }
    }

    private func waiting<Result>(
        until end: Int64, _ body: (WaitingSocket) throws(SocketWaitError) -> Result
    ) throws(WarmError) -> Result {
        do throws(SocketWaitError) {
            return try body(WaitingSocket(descriptor: descriptor, end: end))
        } catch {
            switch error {
            case .timedOut: throw .timedOut
            case .failed(let error): throw .broken(error)
            }
        }
    }

    // MARK: TLS

    private func shakeHands(until end: Int64) throws(WarmError) {
        guard let tls else { return }
        while true {
            switch tls.handshake() {
            case .complete: return
            case .wantRead: try wait(for: POLLIN, until: end)
            case .wantWrite: try wait(for: POLLOUT, until: end)
            case .turnIsOver: break
            // What there is to present is in the context.
            case .wantIdentity: tls.answer(nil)
            case .failed(let error): throw .notSecure(error)
            }
        }
    }

    private func send(
        _ bytes: [UInt8], by tls: TLSClientConnection, until end: Int64
    ) throws(WarmError) {
        var sent = 0
        while sent < bytes.count {
            let result = bytes.withUnsafeBytes {
                tls.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch result {
            case .bytes(let count):
                sent += count
                if sent < bytes.count { try wait(for: POLLOUT, until: end) }
            case .wantRead: try wait(for: POLLIN, until: end)
            case .wantWrite: try wait(for: POLLOUT, until: end)
            // Why is known when what the gateway has sent has been read.
            case .failed:
                while try !receive(by: tls, until: end).isEmpty {}
                throw .closed
            }
        }
    }

    /// What there is; nothing at the end.
    private func receive(
        by tls: TLSClientConnection, until end: Int64
    ) throws(WarmError) -> [UInt8] {
        while true {
            var result = TLSReadResult.turnIsOver
            let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { memory, count in
                result = tls.read(into: UnsafeMutableRawBufferPointer(memory))
                if case .bytes(let taken, _) = result { count = taken }
            }
            switch result {
            case .bytes where !bytes.isEmpty: return bytes
            case .bytes, .turnIsOver: break
            case .wantRead: try wait(for: POLLIN, until: end)
            case .wantWrite: try wait(for: POLLOUT, until: end)
            case .endOfStream: return []
            case .truncated: throw .closed
            case .failed:
                guard case .transport(let code)? = tls.failure else {
                    throw tls.failure.map { .notSecure($0) } ?? .closed
                }
                throw .broken(Errno(code: code))
            }
        }
    }
}
