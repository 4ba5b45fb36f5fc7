import CLinux
import Clocks
import EventLoop
import HTTPCore
import HTTPTypes
import PinfoldClient

/// Why the gateway sends no more.
enum FeedEnd: Sendable {
    /// It has answered something else.
    case refused(RunningGateway.Answer)
    /// The end of the answer, or whoever took it wants no more.
    case ended
    /// What went wrong.
    case failed(String)
}

extension RunningGateway {
    /// How long the gateway may send nothing, in milliseconds: it does at least every 15 s.
    static let silenceMilliseconds: Int64 = 60_000
    /// The most bytes of an answer that is an error.
    private static let problemBytes = 1 << 20

    /// Asks for something that goes on until one of both leaves, and waits for that.
    /// - Parameter take: takes each part as it arrives; returns `false` if it wants no more.
    func follow(_ path: String, _ take: @escaping @Sendable ([UInt8]) -> Bool) -> FeedEnd {
        switch target {
        case .unix(let socket): follow(path, atSocket: socket, take)
        case .url(let url): follow(url: url + path, take)
        }
    }

    private func follow(url: String, _ take: @escaping @Sendable ([UInt8]) -> Bool) -> FeedEnd {
        let name = name
        return Blocking.run { [self] () -> FeedEnd in
            do throws(ClientError) {
                var fields: HTTPFields = [.userAgent: "pinfold/\(pinfoldVersion)"]
                if let token { fields[.authorization] = "Bearer \(token)" }
                let session = try openSession()
                var options = RequestOptions()
                options.timeout = .milliseconds(Self.silenceMilliseconds)
                let response = try await session.response(
                    for: HTTPRequest(.get, url, fields: fields), content: nil, options: options)
                let status = response.head.status.code
                var parts = response.content.makeAsyncIterator()
                var problem: [UInt8] = []
                while let part = try await parts.next() {
                    if status == 200 {
                        guard take(part) else { return .ended }
                    } else {
                        problem += part.prefix(Self.problemBytes - problem.count)
                    }
                }
                return status == 200
                    ? .ended : .refused(Answer(status: status, body: problem))
            } catch {
                return .failed("\(name): \(error.explanation)")
            }
        }
    }

    private func follow(
        _ path: String, atSocket socket: String, _ take: ([UInt8]) -> Bool
    ) -> FeedEnd {
        let descriptor: Int32
        do throws(UnixSocketError) {
            descriptor = try UnixSockets.connect(to: socket)
        } catch {
            return .failed("\(name): \(UnixRequest.UnixRequestError.notConnected(error))")
        }
        defer { Descriptors.close(descriptor) }
        do throws(SocketWaitError) {
            // The content of an answer in HTTP/1.0 ends with the connection.
            let token = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
            try waiting(descriptor, timeout).send(
                Array(
                    ("GET \(path) HTTP/1.0\r\nHost: localhost\r\n"
                        + "User-Agent: pinfold/\(pinfoldVersion)\r\n\(token)\r\n").utf8))
            var received: [UInt8] = []
            var status: UInt16?
            while case let part = try waiting(
                descriptor, status == nil ? timeout : Self.silenceMilliseconds
            ).receive(), !part.isEmpty {
                guard status != 200 else {
                    guard take(part) else { return .ended }
                    continue
                }
                received += part.prefix(Self.problemBytes - received.count)
                guard status == nil, let (code, length) = Self.head(in: received) else { continue }
                status = code
                received.removeFirst(length)
                if code == 200, !received.isEmpty, !take(received) { return .ended }
            }
            guard let status else { return .failed("\(name): the answer is no gateway's") }
            return status == 200
                ? .ended : .refused(Answer(status: Int(status), body: received))
        } catch {
            switch error {
            case .timedOut: return .failed("\(name): no answer in time")
            case .failed(let error): return .failed("\(name): \(error)")
            }
        }
    }

    private func waiting(_ descriptor: Int32, _ milliseconds: Int64) -> WaitingSocket {
        WaitingSocket(
            descriptor: descriptor, end: Clock.monotonicMilliseconds() + milliseconds)
    }

    /// The status of an answer and the length of its head; `nil` if it is not complete.
    private static func head(in received: [UInt8]) -> (status: UInt16, length: Int)? {
        var parser = ResponseHeadParser()
        var head = ResponseHead()
        let progress = try? parser.parse(
            received.span, answering: ResponseContext(method: .get, isUserAgent: true),
            into: &head)
        guard case .complete(let length) = progress else { return nil }
        return (head.status, length)
    }
}
