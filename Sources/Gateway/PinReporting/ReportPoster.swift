import CLinux
import Clocks
import EventLoop
import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldResolver
import PinfoldTLS

/// How an attempt to deliver a report ended.
enum PostResult: Equatable {
    case delivered
    /// The server will not accept this report, whenever it is sent.
    case rejected(status: UInt16)
    /// It was not delivered this time. `answered` means that the server did answer, or closed the
    /// connection after everything had been sent. `retryAfter` is the delay it requested in
    /// milliseconds, if any.
    case failed(String, answered: Bool, retryAfter: Int64?)
    /// The process is ending.
    case interrupted
}

/// Sends a report over a dedicated connection (RFC 9112). Blocks, for a limited time.
///
/// TLS is verified by the given context, which has no pinsets, and no error here counts as a pin
/// failure: no report is ever made about a report.
struct ReportPoster {
    /// Resolves the destinations' names.
    let resolver: Resolver
    let context: TLSClientContext
    /// Waits for a descriptor; `false` if it was not ready in time, or the process is ending.
    let wait: (_ descriptor: Int32, _ events: Int16, _ milliseconds: Int64) -> Bool
    /// Returns `false` if the process is ending.
    let isRunning: () -> Bool
    private let deadline: Int64

    /// The maximum duration of a delivery, in milliseconds.
    static let milliseconds: Int64 = 15_000
    /// The maximum size of a response head.
    private static let headBytes = 16 << 10
    /// The maximum number of interim responses before the final one.
    private static let interimResponses = 16

    /// An error of a delivery.
    private struct DeliveryError: Error {
        var text: String
        init(_ text: String) { self.text = text }
    }

    init(
        resolver: Resolver, context: TLSClientContext,
        wait: @escaping (Int32, Int16, Int64) -> Bool, isRunning: @escaping () -> Bool
    ) {
        self.resolver = resolver
        self.context = context
        self.wait = wait
        self.isRunning = isRunning
        deadline = Clock.monotonicMilliseconds() + Self.milliseconds
    }

    private var remaining: Int64 { max(0, deadline - Clock.monotonicMilliseconds()) }

    /// Whether there is time for another pass. A server may send so much that a descriptor is never
    /// waited for.
    private var hasTime: Bool { remaining > 0 && isRunning() }

    /// Sends JSON to a destination, and reads its response.
    func post(_ body: [UInt8], to destination: ReportDestination) -> PostResult {
        var isSent = false
        do throws(DeliveryError) {
            let descriptor = try connect(destination.origin)
            defer { Descriptors.close(descriptor) }
            var channel = Channel(descriptor: descriptor)
            if destination.origin.scheme == .https {
                channel.tls = try performHandshake(descriptor, destination.origin)
            }
            try send(Self.request(body, to: destination), over: channel)
            isSent = true
            let answer = try receive(over: channel)
            _ = channel.tls?.shutdown()
            return Self.result(answer)
        } catch {
            if !isRunning() { return .interrupted }
            // A server that is lost over one report must not delay the ones after it.
            return .failed(error.text, answered: isSent, retryAfter: nil)
        }
    }

    static func request(_ body: [UInt8], to destination: ReportDestination) -> [UInt8] {
        let head =
            "POST \(destination.path) HTTP/1.1\r\nHost: \(destination.authority)\r\n"
            + "User-Agent: pinfold\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        return Array(head.utf8) + body
    }

    /// A server's response to a report.
    struct Answer: Equatable {
        var status: UInt16
        /// Milliseconds, or `nil` if not specified.
        var retryAfter: Int64?
    }

    /// 2xx means delivered. 4xx means never, except 408, 425 and 429. Everything else, including
    /// redirects, which are not followed, means not now.
    static func result(_ answer: Answer) -> PostResult {
        switch answer.status {
        case 200..<300: .delivered
        case 408, 425, 429:
            .failed(
                "it answered \(answer.status)", answered: true, retryAfter: answer.retryAfter)
        case 400..<500: .rejected(status: answer.status)
        default:
            .failed(
                "it answered \(answer.status)", answered: true, retryAfter: answer.retryAfter)
        }
    }

    // MARK: Connecting

    private func connect(_ origin: UpstreamOrigin) throws(DeliveryError) -> Int32 {
        let addresses = try resolve(origin.host)
        var last = DeliveryError("it has no address")
        for (index, address) in addresses.enumerated() {
            // Each address gets its share of the time, so that one that does not respond cannot use
            // it all.
            let share = remaining / 2 / Int64(addresses.count - index)
            do throws(DeliveryError) {
                return try connect(Endpoint(address: address, port: origin.port), share)
            } catch {
                last = error
            }
        }
        throw last
    }

    private func connect(_ endpoint: Endpoint, _ milliseconds: Int64) throws(DeliveryError) -> Int32
    {
        let descriptor: Int32
        do throws(Errno) {
            descriptor = try Sockets.connect(to: endpoint)
        } catch {
            throw DeliveryError("cannot connect to \(endpoint): \(error)")
        }
        let isReady = wait(descriptor, Int16(POLLOUT), milliseconds)
        if let error = isReady ? Sockets.connectionError(descriptor) : Errno.timedOut {
            Descriptors.close(descriptor)
            throw DeliveryError("cannot connect to \(endpoint): \(error)")
        }
        return descriptor
    }

    private func resolve(_ host: String) throws(DeliveryError) -> [IPAddress] {
        // Written by the resolver's thread, possibly after everyone has stopped waiting.
        let answer = Locked<ResolveResult?>(nil)
        let answered: SharedEvent
        do throws(Errno) {
            answered = try SharedEvent()
        } catch {
            throw DeliveryError("\(error)")
        }
        resolver.resolve(name: host) { result in
            answer.withLock { $0 = result }
            answered.signal()
        }
        _ = wait(answered.descriptor, Int16(POLLIN), remaining)
        switch answer.withLock({ $0 }) {
        case .resolved(let answer): return answer.addresses
        case .failed(let failure):
            throw DeliveryError("\(host) has no address (\(failure.rawValue))")
        case nil: throw DeliveryError("\(host) was not resolved in time")
        }
    }

    private func performHandshake(
        _ descriptor: Int32, _ origin: UpstreamOrigin
    ) throws(DeliveryError) -> TLSClientConnection {
        do throws(TLSError) {
            let tls = try TLSClientConnection(
                context: context, fileDescriptor: descriptor, host: origin.host,
                port: origin.port, now: Clock.coarseWallSeconds())
            while hasTime {
                var events = Int16(POLLIN)
                switch tls.handshake() {
                case .complete: return tls
                case .failed(let error): throw error
                case .turnIsOver: continue
                case .wantWrite: events = Int16(POLLOUT)
                case .wantRead, .wantIdentity: break
                }
                guard wait(descriptor, events, remaining) else { break }
            }
        } catch {
            throw DeliveryError("TLS: \(error)")
        }
        throw DeliveryError("TLS: the handshake did not complete in time")
    }

    // MARK: The exchange

    /// A connection, in clear text or TLS.
    private struct Channel {
        let descriptor: Int32
        var tls: TLSClientConnection?

        /// The number of bytes moved; 0 to wait for `events`; `nil` at the end, or if broken.
        func write(_ bytes: UnsafeRawBufferPointer) -> (count: Int, events: Int16)? {
            guard let tls else {
                switch Transfers.write(descriptor, bytes) {
                case .bytes(let count): return (count, 0)
                case .wouldBlock: return (0, Int16(POLLOUT))
                case .endOfStream, .failed: return nil
                }
            }
            switch tls.write(bytes) {
            case .bytes(let count): return (count, Int16(POLLOUT))
            case .wantRead: return (0, Int16(POLLIN))
            case .wantWrite: return (0, Int16(POLLOUT))
            case .failed: return nil
            }
        }

        func read(_ buffer: UnsafeMutableRawBufferPointer) -> (count: Int, events: Int16)? {
            guard let tls else {
                switch Transfers.read(descriptor, into: buffer) {
                case .bytes(let count): return (count, 0)
                case .wouldBlock: return (0, Int16(POLLIN))
                case .endOfStream, .failed: return nil
                }
            }
            switch tls.read(into: buffer) {
            case .bytes(let count, _): return (count, 0)
            case .wantRead: return (0, Int16(POLLIN))
            case .wantWrite: return (0, Int16(POLLOUT))
            case .turnIsOver: return (0, 0)
            case .endOfStream, .truncated, .failed: return nil
            }
        }
    }

    private func send(_ bytes: [UInt8], over channel: Channel) throws(DeliveryError) {
        var sent = 0
        while sent < bytes.count {
            guard hasTime else { throw DeliveryError("it accepted the report too slowly") }
            let moved = bytes.withUnsafeBytes {
                channel.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            // An answer may have arrived before the end of the request: it is read.
            guard let moved else { return }
            sent += moved.count
            if moved.count == 0, !wait(channel.descriptor, moved.events, remaining) {
                throw DeliveryError("it accepted the report too slowly")
            }
        }
    }

    private func receive(over channel: Channel) throws(DeliveryError) -> Answer {
        var parser = ResponseHeadParser(limits: HeadLimits())
        var head = ResponseHead()
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        var interim = 0
        while true {
            guard hasTime else { throw DeliveryError("it did not answer in time") }
            guard let moved = part.withUnsafeMutableBytes({ channel.read($0) }) else {
                throw DeliveryError("it closed the connection without an answer")
            }
            if moved.count == 0 {
                if moved.events != 0, !wait(channel.descriptor, moved.events, remaining) {
                    throw DeliveryError("it did not answer in time")
                }
                continue
            }
            bytes += part[..<moved.count]
            guard bytes.count <= Self.headBytes else {
                throw DeliveryError("its answer is too long")
            }
            while true {
                let progress: ParseProgress
                do throws(WireError) {
                    progress = try parser.parse(
                        bytes.span, answering: ResponseContext(method: .post), into: &head)
                } catch {
                    throw DeliveryError("its answer is not HTTP: \(error)")
                }
                switch progress {
                case .complete(let count) where head.isInterim:
                    interim += 1
                    guard interim <= Self.interimResponses else {
                        throw DeliveryError("its answer does not end")
                    }
                    bytes.removeFirst(count)
                    head = ResponseHead()
                    continue
                case .complete:
                    bytes.withUnsafeMutableBytes { head.repair(in: $0) }
                    return Self.answer(head, bytes)
                case .bareLines:
                    guard let status = Self.statusOfBareHead(bytes) else {
                        throw DeliveryError("its answer is not HTTP")
                    }
                    return Answer(status: status)
                case .needMore: break
                }
                break
            }
        }
    }

    /// The status of a head whose lines end in a bare line feed, from its beginning, `HTTP/1.1
    /// 204`.
    static func statusOfBareHead(_ bytes: [UInt8]) -> UInt16? {
        UInt16(String(decoding: bytes.dropFirst(9).prefix(3), as: UTF8.self))
    }

    private static func answer(_ head: ResponseHead, _ bytes: [UInt8]) -> Answer {
        var answer = Answer(status: head.status)
        guard let field = head.fields.only(.retryAfter) else { return answer }
        answer.retryAfter = retryAfter(
            Array(bytes[Int(field.value.start)..<Int(field.value.end)]),
            now: Clock.coarseWallSeconds())
        return answer
    }

    /// Retry-After (RFC 9110 §10.2.3) in milliseconds, or `nil` if it is invalid.
    static func retryAfter(_ value: [UInt8], now: Int64) -> Int64? {
        RetryAfter.milliseconds(value, now: now).map {
            min($0, ReportBackoff.longestAskedMilliseconds)
        }
    }
}

/// An event descriptor that stays open as long as any owner may signal it.
final class SharedEvent: Sendable {
    let descriptor: Int32
    init() throws(Errno) { descriptor = try Descriptors.event() }
    deinit { Descriptors.close(descriptor) }
    func signal() { Descriptors.signal(descriptor) }
}
