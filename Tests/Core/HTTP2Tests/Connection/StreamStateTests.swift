import HTTP2
import Testing

@Suite("The states of a stream")
struct StreamStateTests {
    /// A row for each state, a column for each event, in the order of their declarations.
    ///
    /// o: open, l: half-closed (local), r: half-closed (remote), e: ended, P: reset by the peer, U:
    /// reset by us, -: still idle, i: ignored; S: stream error STREAM_CLOSED; C and p: connection
    /// error STREAM_CLOSED and PROTOCOL_ERROR; x: must not be sent.
    private static let table: [(StreamState, String)] = [
        // Received: HEADERS, the same with END_STREAM, DATA, the same with END_STREAM, RST_STREAM,
        // WINDOW_UPDATE, PRIORITY; sent: the first four, RST_STREAM.
        (.idle, "or pppp- olxxx"),
        (.open, "or orPoo olol U"),
        (.halfClosedLocal, "le lePll xxxx U"),
        (.halfClosedRemote, "SS SSPrr rere U"),
        (.ended, "CC SSiii xxxx x"),
        (.resetByPeer, "CC SSiii xxxx x"),
        (.resetByUs, "ii iiiii xxxx x"),
    ]

    private static func symbol(_ reaction: StreamReaction) -> Character {
        switch reaction {
        case .proceed(.idle): "-"
        case .proceed(.open): "o"
        case .proceed(.halfClosedLocal): "l"
        case .proceed(.halfClosedRemote): "r"
        case .proceed(.ended): "e"
        case .proceed(.resetByPeer): "P"
        case .proceed(.resetByUs): "U"
        case .ignore: "i"
        case .resetStream(.streamClosed): "S"
        case .endConnection(.streamClosed): "C"
        case .endConnection(.protocolError): "p"
        case .resetStream, .endConnection: "?"
        case .illegal: "x"
        }
    }

    @Test func `are those of RFC 9113 §5.1, for every event`() {
        #expect(Self.table.map(\.0) == StreamState.allCases)
        for (state, row) in Self.table {
            let expected = row.filter { $0 != " " }
            let found = String(StreamEvent.allCases.map { Self.symbol(state.after($0)) })
            #expect(found == expected, "\(state)")
        }
    }

    @Test func `that are closed stay closed, and neither send nor receive`() {
        for state in StreamState.allCases {
            #expect(state.isClosed == [.ended, .resetByPeer, .resetByUs].contains(state))
            #expect(state.isReceiving == [.open, .halfClosedLocal].contains(state))
            #expect(state.isSending == [.open, .halfClosedRemote].contains(state))
            guard state.isClosed else { continue }
            for event in StreamEvent.allCases {
                if case .proceed = state.after(event) { Issue.record("\(state) \(event)") }
            }
        }
    }

    @Test func `end in the same way whichever side ends first`() {
        let received: [StreamEvent] = [.receivedHeaders, .receivedData, .receivedDataAndEnd]
        let sent: [StreamEvent] = [.sentHeaders, .sentDataAndEnd]
        for split in 0...2 {
            var state = StreamState.idle
            let events =
                [received[0]] + sent.prefix(split) + received.dropFirst()
                + sent.dropFirst(split)
            for event in events {
                guard case .proceed(let next) = state.after(event) else {
                    Issue.record("\(state) \(event)")
                    return
                }
                state = next
            }
            #expect(state == .ended)
        }
    }
}
