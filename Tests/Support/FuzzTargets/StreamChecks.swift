import PinfoldClient

extension FuzzTarget {
    /// The first byte selects the end that receives, and what was agreed on; the peer's bytes
    /// follow. Events and answers are the same however they arrive, and messages are received again
    /// after the peer's end has sent them.
    func checkWebSocket(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let limits = WebSocketConnection.Limits(
            messageBytes: selector & 4 == 0 ? 1 << 12 : 100, sentFrameBytes: 40)
        let compresses = selector & 2 != 0
        func connection(_ role: WebSocketConnection.Role) -> WebSocketConnection {
            WebSocketConnection(
                role: role, limits: limits, compresses: compresses, maskingKey: { 0x1234_5678 })
        }
        let isClient = selector & 1 == 0
        let stream = Array(bytes.dropFirst())
        let found = try Arrivals.read(stream) { ends in
            var end = connection(isClient ? .client : .server)
            return WebSocketOutcome(stream, ends, &end)
        }
        var sender = connection(isClient ? .server : .client)
        for event in found.events {
            switch event {
            case .text(let text): sender.send(text: text)
            case .binary(let content): sender.send(binary: content)
            default: continue
            }
        }
        let sent = found.events.filter(WebSocketOutcome.isMessage)
        let output = sender.takeOutput()
        var receiver = connection(isClient ? .client : .server)
        guard WebSocketOutcome(output, [output.count], &receiver).events == sent else {
            throw FuzzCheckError("\(sent) are received as something else")
        }
        let most = found.events.map(WebSocketOutcome.size).max() ?? 0
        guard most <= max(limits.messageBytes, 125), found.output.count <= 131 * 2 + 14 else {
            throw FuzzCheckError("\(most) bytes in an event, \(found.output.count) in answer")
        }
        if case .failed? = found.events.last { return false }
        return true
    }

    /// The first byte selects the limits; the stream follows. Its events are the same however it
    /// arrives, and again after they have been written.
    func checkEventStream(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let limits =
            selector & 32 == 0
            ? ServerSentEventParser.Limits()
            : ServerSentEventParser.Limits(eventBytes: 40, lineBytes: 20)
        let stream = Array(bytes.dropFirst())
        let found = try Arrivals.read(stream) { ends in EventOutcome(stream, ends, limits) }
        guard found.events.count <= stream.count / 6, found.milliseconds ?? 0 >= 0,
            found.events.allSatisfy({ !$0.data.utf8.contains(0x0D) && !$0.type.isEmpty })
        else { throw FuzzCheckError("\(found) was read") }
        let written = found.events.flatMap { event -> [UInt8] in
            let lines = event.data.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
            let data = lines.map { "data: \(Substring($0))\n" }.joined()
            return Array("id: \(event.lastEventID)\nevent: \(event.type)\n\(data)\n".utf8)
        }
        let again = EventOutcome(
            written, [written.count], .init(eventBytes: .max / 2, lineBytes: .max / 2))
        guard again.events == found.events, again.error == nil else {
            throw FuzzCheckError("\(found.events), then \(again.events)")
        }
        return found.error == nil
    }
}

private struct WebSocketOutcome: Equatable {
    var events: [WebSocketConnection.Event] = []
    var output: [UInt8]
    var isClosed: Bool

    init(_ bytes: [UInt8], _ ends: [Int], _ connection: inout WebSocketConnection) {
        var start = 0
        for end in ends {
            events += connection.receive(Array(bytes[start..<end]))
            start = end
        }
        output = connection.takeOutput()
        isClosed = connection.isClosed
    }

    static func isMessage(_ event: WebSocketConnection.Event) -> Bool {
        switch event {
        case .text, .binary: true
        default: false
        }
    }

    static func size(_ event: WebSocketConnection.Event) -> Int {
        switch event {
        case .text(let text): text.utf8.count
        case .binary(let content), .ping(let content), .pong(let content): content.count
        case .closed(_, let reason): reason.utf8.count
        case .failed: 0
        }
    }
}

private struct EventOutcome: Equatable {
    var events: [ServerSentEvent] = []
    var error: ServerSentEventError?
    var lastEventID: String
    var milliseconds: Int64?

    init(_ bytes: [UInt8], _ ends: [Int], _ limits: ServerSentEventParser.Limits) {
        var parser = ServerSentEventParser(limits: limits)
        var start = 0
        for end in ends where error == nil {
            do throws(ServerSentEventError) {
                try parser.parse(bytes[start..<end], into: &events)
            } catch {
                self.error = error
            }
            start = end
        }
        (lastEventID, milliseconds) = (parser.lastEventID, parser.reconnectionMilliseconds)
    }
}
