import EventLoop
import HTTPCore

extension Exchange {
    /// The request as it came in: from whom, and where its bytes are.
    package struct Intake {
        package private(set) var ingress: Ingress?
        package private(set) var peer: Endpoint?
        /// The client whose request caused this background exchange.
        private(set) var onBehalfOf: Endpoint?
        /// The ends of the client's connection, once a server is told them.
        private(set) var ends: ClientEnds?
        /// Whether that client is this program itself.
        private(set) var isOwn = false
        /// Whether the client may be served.
        private(set) var isServed = false
        /// Contains the head, and perhaps content after it.
        private(set) var buffer: Buffer?
        private var headStart = 0
        /// Whether the request has content.
        private(set) var hasContent = false
        /// Whether no more content will arrive.
        private(set) var contentHasEnded = true
        /// Bytes of content accepted from the client, whether or not they were forwarded.
        private(set) var receivedBytes: UInt64 = 0
        /// The position of the content in the head's buffer, if all of it arrived with the head and
        /// it can be sent again.
        private(set) var replayable: Range<Int>?
        /// What the sender of a head that could not be parsed seems to prefer.
        private(set) var refusedFormat = ReplyFormat.text

        /// A client's request has arrived.
        @inline(__always)
        mutating func begin(
            from peer: Endpoint, through ingress: consuming Ingress, hasContent: Bool,
            isServed: Bool
        ) {
            self.peer = peer
            self.ingress = consume ingress
            self.isServed = isServed
            self.hasContent = hasContent
            contentHasEnded = !hasContent
        }

        /// A request of the gateway's own, which another client's request has caused, begins.
        mutating func begin(onBehalfOf other: Exchange) {
            onBehalfOf = other.peer ?? other.intake.onBehalfOf
            if other.origin?.key.proxyHeader != nil { ends = other.clientEnds }
            isOwn = !other.isIntermediary
        }

        /// The network of the client that has caused a request of the gateway's own.
        var causingNetwork: IPNetwork? { onBehalfOf.map { IPNetwork(client: $0.address) } }

        /// A server is told the ends of the client's connection: the same ones from now on, also
        /// if the client leaves.
        mutating func tell(_ ends: ClientEnds) { self.ends = ends }

        /// A part of a head has arrived that cannot be parsed.
        mutating func refuse(preferring format: ReplyFormat) { refusedFormat = format }

        // MARK: The head

        /// Takes the buffer with the head, in place of the former one.
        @inline(__always)
        mutating func takeHead(in buffer: consuming Buffer?, at start: Int = 0) {
            self.buffer = consume buffer
            headStart = start
        }

        /// The bytes of the head.
        /// - Parameter length: the head's length.
        @inline(__always)
        func head(length: Int) -> UnsafeRawBufferPointer {
            guard let buffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
            return UnsafeRawBufferPointer(
                rebasing: buffer.memory[headStart..<(headStart + length)])
        }

        /// The same to be changed in place; `nil` if there is no head.
        func mutableHead(length: Int) -> UnsafeMutableRawBufferPointer? {
            buffer.map {
                UnsafeMutableRawBufferPointer(
                    rebasing: $0.memory[headStart..<(headStart + length)])
            }
        }

        // MARK: The content

        /// Content that is entirely in the head's buffer can be sent a second time. This must be
        /// called before any of it is removed from the buffer, as the next request follows it.
        mutating func rememberReplayable(_ framing: BodyFraming) {
            guard case .length(let length) = framing, let buffer, UInt64(buffer.count) >= length
            else { return }
            replayable = buffer.start..<(buffer.start + Int(length))
        }

        /// All of the content is collected elsewhere, and sent from there.
        mutating func gatherContent() { replayable = nil }

        mutating func received(_ count: Int) { receivedBytes += UInt64(count) }

        mutating func contentEnded() { contentHasEnded = true }

        /// Rules have replaced the content, all of which is there.
        /// - Parameter count: its length; `nil` if there is none any more.
        mutating func replaceContent(count: Int?) {
            hasContent = count != nil
            replayable = count.map { 0..<$0 }
        }
    }
}

extension Exchange {
    /// The ends of the connection of the client that it works for. A request of the gateway's own
    /// goes out in the name of the client that has caused it, as in X-Forwarded-For.
    package var clientEnds: ClientEnds? {
        if let ends = intake.ends { return ends }
        guard let source = peer, source.address != .unnamed,
            let destination = ingress?.destination ?? client?.localEndpoint
        else { return nil }
        let ends = ClientEnds(source: source, destination: destination)
        intake.tell(ends)
        return ends
    }

    @inline(__always)
    var ingress: Ingress? { intake.ingress }

    @inline(__always)
    var peer: Endpoint? { intake.peer }
}
