import Trust

extension FuzzTarget {
    /// The first byte selects what the bytes after it are: one direction of a connection, in one of
    /// the stages, or the end of a handshake as one of the sides sends it.
    ///
    /// The same items are found however they arrive, and again after they have been written.
    func checkHandshakeStream(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let stream = Array(bytes.dropFirst())
        if selector & 4 != 0 {
            let ending = try Arrivals.read(stream) { ends throws(FuzzCheckError) in
                try EndingOutcome(stream, ends, isServer: selector & 1 != 0)
            }
            guard ending.ticket.count <= stream.count else {
                throw FuzzCheckError("a ticket of \(ending.ticket.count) bytes")
            }
            return ending.error == nil
        }
        var limits = HandshakeStream.Limits()
        if selector & 8 != 0 {
            (limits.total, limits.message, limits.clientHello) = (200, 60, 40)
            (limits.certificates, limits.alerts, limits.cipherChanges) = (80, 2, 2)
        }
        let stages: [HandshakeStream.Stage] = [
            .upToEncryption, .afterRetry(skipsEarlyData: false), .afterRetry(skipsEarlyData: true),
        ]
        let stage = stages[Int(selector & 3) % stages.count]
        let outcome = try Arrivals.read(stream) { ends in
            StreamOutcome(stream, ends, limits, stage)
        }
        try outcome.check(stream, limits)
        // Written one in each record, or more if it is long, they are the same again.
        let written = outcome.items.flatMap(StreamOutcome.written)
        limits.total = .max
        let again = StreamOutcome(written, [written.count], limits, stage)
        guard again.items == outcome.items, again.error == nil,
            again.isBetweenMessages || again.isOver
        else {
            throw FuzzCheckError("\(outcome.items) are read as \(again)")
        }
        return outcome.error == nil
    }
}

/// What was found in one direction of a connection.
struct StreamOutcome: Equatable {
    private(set) var items: [HandshakeStream.Item] = []
    private(set) var error: TLSWireError?
    private(set) var isOver = false
    private(set) var isBetweenMessages = false

    init(
        _ bytes: [UInt8], _ ends: [Int], _ limits: HandshakeStream.Limits,
        _ stage: HandshakeStream.Stage
    ) {
        var stream = HandshakeStream(limits: limits, stage: stage)
        var start = 0
        for end in ends where error == nil {
            error = Self.error(of: &stream, bytes[start..<end], into: &items)
            start = end
        }
        (isOver, isBetweenMessages) = (stream.isOver, stream.isBetweenMessages)
        // After an error nothing more is read.
        if error != nil { isBetweenMessages = false }
    }

    /// Takes the next bytes of a stream. Returns the first error.
    static func error(
        of stream: inout HandshakeStream, _ bytes: ArraySlice<UInt8>,
        into items: inout [HandshakeStream.Item]
    ) -> TLSWireError? {
        bytes.withUnsafeBytes { buffer -> TLSWireError? in
            var rest = buffer[...]
            do throws(TLSWireError) {
                while let item = try stream.next(&rest) { items.append(item) }
                return nil
            } catch {
                return error
            }
        }
    }

    func check(_ bytes: [UInt8], _ limits: HandshakeStream.Limits) throws(FuzzCheckError) {
        var (messages, alerts) = (0, 0)
        for item in items {
            switch item {
            case .message(let message):
                messages += message.body.count
                let most =
                    switch message.kind {
                    case .clientHello: limits.clientHello
                    case .certificate: limits.certificates
                    default: limits.message
                    }
                guard message.body.count <= most else { throw FuzzCheckError("a long \(message)") }
            case .alert: alerts += 1
            case .changeCipherSpec: break
            }
        }
        guard messages <= min(bytes.count, limits.total), alerts <= limits.alerts else {
            throw FuzzCheckError("\(messages) bytes of messages, \(alerts) alerts")
        }
    }

    static func written(_ item: HandshakeStream.Item) -> [UInt8] {
        switch item {
        case .message(let message): TLSBytes.message(message.kind.rawValue, message.body)
        case .alert(let isFatal, let code): TLSBytes.record(21, [isFatal ? 2 : 1, code])
        case .changeCipherSpec: TLSBytes.cipherChange
        }
    }
}

/// How a handshake before TLS 1.3 ended.
private struct EndingOutcome: Equatable {
    var isOver: Bool
    var isBroken: Bool
    var ticket: [UInt8]
    var error: TLSWireError?

    /// - Parameter isServer: whether the server sends the bytes, after everything from the client.
    init(_ bytes: [UInt8], _ ends: [Int], isServer: Bool) throws(FuzzCheckError) {
        var ending = HandshakeEnding()
        let client = TLSBytes.message(16, [1, 2, 3]) + TLSBytes.cipherChange
        if isServer, Self.error(of: &ending, client, 0..<client.count, isServer: false) != nil {
            throw FuzzCheckError("what every client sends is refused")
        }
        var start = 0
        for end in ends where error == nil {
            error = Self.error(of: &ending, bytes, start..<end, isServer: isServer)
            start = end
        }
        (isOver, isBroken, ticket) = (ending.isOver, ending.isBroken, ending.ticket)
    }

    private static func error(
        of ending: inout HandshakeEnding, _ bytes: [UInt8], _ range: Range<Int>, isServer: Bool
    ) -> TLSWireError? {
        do throws(TLSWireError) {
            try bytes.part(range) { part throws(TLSWireError) in
                if isServer {
                    try ending.takeFromServer(part)
                } else {
                    try ending.takeFromClient(part)
                }
            }
            return nil
        } catch {
            return error
        }
    }
}
