import CLinux
import Clocks
import EventLoop
import HTTPCore

/// Why a request through the gateway has no response.
enum WarmError: Error, Equatable, CustomStringConvertible {
    case notConnected(Errno)
    case broken(Errno)
    case closed
    case timedOut
    case malformed(String)

    /// The kind of error, by which they are counted.
    var kind: String {
        switch self {
        case .notConnected: "cannot connect"
        case .broken, .closed: "connection lost"
        case .timedOut: "timed out"
        case .malformed: "invalid response"
        }
    }

    var description: String {
        switch self {
        case .notConnected(let error): "cannot connect to the gateway: \(error)"
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
    private let endpoint: Endpoint
    private let timeout: Int64
    private var descriptor: Int32 = -1
    private var received: [UInt8] = []

    /// - Parameter timeout: for each request, in milliseconds.
    init(to endpoint: Endpoint, timeout: Int64) {
        self.endpoint = endpoint
        self.timeout = timeout
    }

    deinit { if descriptor >= 0 { Descriptors.close(descriptor) } }

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

    private mutating func close() {
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
            descriptor = try Sockets.connect(to: endpoint)
        } catch {
            throw .notConnected(error)
        }
        try waiting(until: end) { (socket) throws(SocketWaitError) in
            try socket.wait(for: POLLOUT)
        }
        if let error = Sockets.connectionError(descriptor) { throw .notConnected(error) }
    }

    private func send(_ bytes: [UInt8], until end: Int64) throws(WarmError) {
        try waiting(until: end) { (socket) throws(SocketWaitError) in try socket.send(bytes) }
    }

    private func receive(until end: Int64) throws(WarmError) -> [UInt8] {
        try waiting(until: end) { (socket) throws(SocketWaitError) in try socket.receive() }
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
}
