import TestSupport
import Testing

@testable import HTTPCore

@Suite("The phases of an HTTP/1 connection")
struct HTTP1ConnectionTests {
    private typealias Table = HTTP1ConnectionTable
    private typealias Event = HTTP1Connection.Event

    @Test(arguments: HTTP1Connection.Role.allCases)
    func `the page shows the transitions of the code`(_ role: HTTP1Connection.Role) throws {
        let page = Table.page(role)
        let isThere = try Checkout.page("Phases").contains(page)
        #expect(isThere, "the table of the \(role) should be:\n\(page)")
    }

    // MARK: All transitions

    /// Faster than `#expect`, which is too slow for so many transitions.
    private func expect(_ transition: Table.Transition, _ isRight: Bool) {
        if !isRight {
            let (state, event) = (transition.state, transition.event)
            Issue.record("\(event) in \(state): \(transition.reaction), \(transition.next)")
        }
    }

    @Test func `every phase can be reached by the roles that have it`() {
        let all = Set(HTTP1Connection.Phase.allCases)
        #expect(Table.reachable(.client) == all.subtracting([.lingering]))
        #expect(Table.reachable(.server) == all.subtracting([.answered, .finishing]))
    }

    @Test func `what is illegal changes nothing`() {
        Table.each {
            expect($0, $0.reaction != .illegal || $0.next == $0.state)
        }
    }

    @Test func `what will not persist never does again`() {
        Table.each {
            expect($0, $0.state.persists || !$0.next.persists)
        }
    }

    /// The rule against request smuggling: what is left over of one exchange is never taken for a
    /// part of the next.
    @Test func `a connection is used again only if nothing of its exchange is left`() {
        Table.each {
            guard $0.reaction != .illegal else { return }
            let isReused = $0.reaction == .reuse
            let becomesIdle = $0.next.phase == .idle && $0.state.phase != .idle
            let isOpened = $0.event == .opened
            var isRight = isReused == (becomesIdle && !isOpened)
            if isReused {
                isRight = isRight && $0.state.persists
                switch ($0.state.role, $0.event) {
                case (.client, .responseEnded(let rest)):
                    isRight = isRight && $0.state.phase == .responding && rest == .clean
                case (.client, .settled(let rest)):
                    isRight = isRight && $0.state.phase == .finishing && rest == .clean
                case (.client, .givenBack(let rest)):
                    isRight =
                        isRight && $0.state.phase == .starting && rest == .clean
                        && !$0.state.responseHasBegun
                // A client may send its next request before the response (RFC 9112 §9.3.2).
                case (.server, .responseEnded): isRight = isRight && $0.state.phase == .responding
                default: isRight = false
                }
            }
            expect($0, isRight)
        }
    }

    @Test func `what a peer has seen fail is not used again`() {
        Table.each(["sendingFailed", "refused", "drain"]) {
            expect($0, $0.reaction == .illegal || !$0.next.persists)
        }
    }

    @Test func `each role has its own reactions`() {
        for step in Table.steps {
            switch step.reaction {
            case .reset, .linger, .refuse: #expect(step.role == .server, "\(step)")
            case .finishRequest: #expect(step.role == .client, "\(step)")
            case .nothing, .illegal, .reuse, .close, .abandon: break
            }
        }
    }

    @Test func `an open connection can be closed in every phase, once`() {
        for role in HTTP1Connection.Role.allCases {
            for phase in HTTP1Connection.Phase.allCases {
                let legal = Table.steps.filter { $0.role == role && $0.phase == phase }
                let isOpen = phase != .closed && phase != .detached
                #expect(legal.isEmpty == !isOpen, "\(phase)")
                let closings = legal.filter { $0.event == "closed" }
                #expect(closings.map(\.next) == (isOpen ? [.closed] : []), "\(phase)")
            }
        }
    }

    @Test func `nothing of one exchange is known in the next`() {
        Table.each(["headBegan", "requestHead", "refused"]) {
            guard $0.reaction != .illegal, $0.state.phase == .idle else { return }
            var known = $0.next.facts.subtracting(.ofConnection)
            if case .requestHead(let request) = $0.event {
                expect($0, known.contains(.maySwitch) == request.maySwitch)
                expect($0, known.contains(.holdsBack) == request.expectsContinue)
                expect($0, known.contains(.requestEnded) == !request.hasContent)
                known.subtract([.maySwitch, .holdsBack, .requestEnded])
                // A server's idle connection has not been answered.
                known.remove(.responseBegan)
            }
            expect($0, known.isEmpty)
        }
    }

    @Test func `a message is framed as its own head says, whatever preceded it`() {
        Table.each(["requestHead", "refused"]) {
            guard $0.reaction != .illegal, [.idle, .starting].contains($0.state.phase) else {
                return
            }
            var (framing, version) = (HTTP1Connection.SentFraming.counted, HTTPVersion.http11)
            if case .requestHead(let request) = $0.event {
                framing = request.isChunked ? .chunked : .counted
                version = request.version
            }
            expect($0, $0.next.sentFraming == framing && $0.next.version == version)
        }
    }

    // MARK: The request and its response

    @Test func `content that is queued is not held back any more`() {
        Table.each(["contentQueued"]) {
            guard $0.reaction != .illegal else { return }
            expect($0, $0.next.facts == $0.state.facts.subtracting(.holdsBack))
        }
    }

    @Test func `it is known that the peer has finished`() {
        Table.each(["peerFinished", "inputEnded"]) {
            expect($0, $0.reaction == .illegal || $0.next.peerHasFinished)
        }
    }

    @Test func `one empty line may follow each interim response, and nothing else`() {
        Table.each(["interimHead", "emptyLinePassed", "responseHead", "headBegan"]) {
            guard $0.reaction != .illegal else { return }
            var mayFollow = false
            if case .interimHead(let persists) = $0.event {
                mayFollow = true
                expect($0, $0.next.persists == ($0.state.persists && persists))
            }
            expect($0, $0.next.emptyLineMayFollow == mayFollow)
        }
    }

    @Test func `another protocol follows only on a request that may switch`() {
        Table.each(["detached"]) {
            guard $0.reaction != .illegal else { return }
            // The request is complete, so none of it is taken for the other protocol.
            let expected = $0.state.role == .client ? HTTP1Connection.Phase.responding : .awaiting
            expect($0, $0.state.facts.contains(.maySwitch) && $0.state.phase == expected)
        }
    }

    @Test func `a server's connection changes its version only before its first request`() {
        Table.each(["versionChanged"]) {
            let isFirst = !$0.state.facts.contains(.hasCarried)
            let mayChange =
                $0.state.role == .server && isFirst
                && [.idle, .starting].contains($0.state.phase)
            expect($0, mayChange == ($0.reaction == .nothing))
            if mayChange { expect($0, $0.next.phase == .detached) }
        }
    }

    @Test func `a response head has one request, and one request has one final head`() {
        Table.each(["responseHead"]) {
            let isExpected = [.requesting, .awaiting].contains($0.state.phase)
            expect($0, isExpected == ($0.reaction != .illegal))
            if isExpected { expect($0, $0.next.responsePart == .content) }
        }
    }

    @Test func `a response that precedes the end of its request is a server's last one`() {
        Table.each(["responseHead"]) {
            guard $0.state.role == .server, $0.state.phase == .requesting else { return }
            expect($0, !$0.next.persists && $0.next.connectionOption == .close)
        }
    }

    /// RFC 9110 §7.5.
    @Test func `a client finishes a request that succeeded early, and that its server reads`() {
        Table.each(["responseEnded"]) {
            guard case .responseEnded(let rest) = $0.event, $0.state.role == .client,
                $0.reaction != .illegal
            else { return }
            let isUnsent = $0.state.phase == .answering || !rest.isFlushed
            let facts = $0.state.facts
            let isRead =
                facts.contains(.persists) && facts.contains(.isSuccess)
                && !facts.contains(.peerFinished) && !facts.contains(.holdsBack)
                && !rest.hasInput
            expect($0, ($0.reaction == .finishRequest) == (isUnsent && isRead))
            expect($0, $0.state.finishesRequest(rest) == (isUnsent && isRead))
        }
    }

    @Test func `a client ends a connection whose request was not completed`() {
        Table.each(["settled"]) {
            guard $0.state.role == .client, $0.state.phase == .answered else { return }
            expect($0, $0.reaction == .close)
        }
    }

    @Test func `a server reads nothing behind a request that it refused`() {
        Table.each(["refused"]) {
            guard $0.reaction != .illegal else { return }
            expect($0, [.awaiting, .responding].contains($0.next.phase))
            expect($0, !$0.next.persists)
        }
    }

    @Test func `a client that has ended its direction is answered if its request is complete`() {
        Table.each(["inputEnded"]) {
            guard $0.state.role == .server else { return }
            switch $0.state.phase {
            case .awaiting, .responding: expect($0, $0.reaction == .nothing)
            case .requesting, .answering: expect($0, $0.reaction == .abandon)
            case .starting: expect($0, $0.reaction == .refuse)
            case .opening, .idle, .lingering: expect($0, $0.reaction == .close)
            case .answered, .finishing, .detached, .closed: expect($0, $0.reaction == .illegal)
            }
        }
    }

    @Test func `a server that ends within its response has completed it only if that ends it`() {
        Table.each(["inputEnded"]) {
            guard $0.state.role == .client, $0.state.responsePart == .content else { return }
            let isComplete = $0.event == .inputEnded(completing: true)
            expect($0, $0.reaction == (isComplete ? .nothing : .abandon))
            expect($0, !$0.next.persists)
        }
    }

    @Test func `a server that ends after its response is sent no other request`() {
        Table.each(["inputEnded"]) {
            guard $0.state.role == .client, $0.state.responsePart == .ended else { return }
            expect($0, $0.reaction == .illegal || !$0.next.persists)
        }
    }

    @Test func `a response that is cut is reset where its end would be taken for complete`() {
        Table.each(["cut"]) {
            guard $0.reaction != .illegal else { return }
            expect($0, ($0.reaction == .reset) == ($0.state.sentFraming == .untilClose))
        }
    }

    // MARK: What a server writes

    @Test(arguments: Table.versions, [true, false])
    func `content of unknown length is sent as the version allows (RFC 9112 §6.1)`(
        _ version: HTTPVersion, _ isStreamed: Bool
    ) {
        var connection = HTTP1Connection(.server, isOpen: true)
        _ = connection.handle(
            .requestHead(.init(version: version, hasContent: false, maySwitch: false)))
        _ = connection.handle(.responseHead(.init(persists: true, isStreamed: isStreamed)))
        let expected: HTTP1Connection.SentFraming =
            isStreamed ? (version == .http11 ? .chunked : .untilClose) : .counted
        #expect(connection.sentFraming == expected)
        #expect(connection.persists == (expected != .untilClose))
        _ = connection.handle(.headWithdrawn)
        #expect(connection.sentFraming == .counted)
        #expect(connection.phase == .awaiting)
    }

    @Test(
        arguments: [
            (.http11, true, true, .none), (.http11, false, true, .close),
            (.http11, true, false, .close), (.http10, true, true, .keepAlive),
            (.http10, false, true, .close), (.http10, true, false, .close),
        ] as [(HTTPVersion, Bool, Bool, HTTP1Connection.ConnectionOption)])
    func `Connection says what both sides want (RFC 9112 §9.3)`(
        _ version: HTTPVersion, _ request: Bool, _ response: Bool,
        _ expected: HTTP1Connection.ConnectionOption
    ) {
        var connection = HTTP1Connection(.server, isOpen: true)
        _ = connection.handle(
            .requestHead(
                .init(version: version, hasContent: false, persists: request, maySwitch: false)))
        _ = connection.handle(.responseHead(.init(persists: response)))
        #expect(connection.connectionOption == expected)
        let next = connection.handle(.responseEnded(.clean))
        #expect(next == (expected == .close ? .linger : .reuse))
    }

    // MARK: In order

    /// A client's exchange from the first event to the last, and what each of them requires.
    private func course(
        _ role: HTTP1Connection.Role, isOpen: Bool = true, _ events: [Event]
    ) -> (connection: HTTP1Connection, reactions: [HTTP1Connection.Reaction]) {
        var connection = HTTP1Connection(role, isOpen: isOpen)
        let reactions = events.map { connection.handle($0) }
        return (connection, reactions)
    }

    private static let request = Event.requestHead(.init(hasContent: true, maySwitch: false))
    private static let success = Event.responseHead(.init(persists: true, isSuccess: true))

    @Test func `one exchange follows another`() {
        let exchange: [Event] = [
            .headBegan, Self.request, .requestEnded, .responseBegan, Self.success,
            .responseEnded(.clean),
        ]
        let (connection, reactions) = course(.client, exchange + exchange)
        #expect(reactions.filter { $0 == .reuse }.count == 2)
        #expect(Set(reactions) == [.nothing, .reuse])
        #expect(connection.phase == .idle && connection.hasCarriedExchange)
    }

    @Test func `the rest of a request goes out after a response that came early`() {
        let unsent = HTTP1Connection.Rest(isFlushed: false, hasInput: false)
        let (connection, reactions) = course(
            .client,
            [
                .headBegan, Self.request, .contentQueued, .responseBegan, Self.success,
                .responseEnded(unsent), .contentQueued, .requestEnded, .settled(.clean),
            ])
        #expect(reactions[5] == .finishRequest && reactions.last == .reuse)
        #expect(connection.phase == .idle)
    }

    /// What was sent of the request may be half of it, whatever the response says: the next request
    /// would be taken for its other half.
    @Test func `a connection on which sending failed is not used again after a response`() {
        let (connection, reactions) = course(
            .client,
            [
                .headBegan, Self.request, .requestEnded, .sendingFailed, .responseBegan,
                Self.success, .responseEnded(.clean),
            ])
        #expect(reactions.last == .close)
        #expect(connection.phase == .finishing)
    }

    @Test func `heads of bare lines end the connection, those of interim responses as well`() {
        let (_, reactions) = course(
            .client,
            [
                .headBegan, Self.request, .requestEnded, .responseBegan,
                .interimHead(persists: false), .emptyLinePassed, Self.success,
                .responseEnded(.clean),
            ])
        #expect(reactions.last == .close)
    }

    @Test func `it is known of a closed connection whether its request was complete`() {
        for isComplete in [true, false] {
            let (connection, reactions) = course(
                .client,
                [.headBegan, Self.request] + (isComplete ? [.requestEnded] : [])
                    + [
                        .responseBegan, .responseHead(.init(persists: false)),
                        .responseEnded(.clean), .closed,
                    ])
            #expect(Set(reactions) == [.nothing, .close])
            #expect(connection.requestIsComplete == isComplete)
        }
    }

    @Test func `a connection that was only verified is idle again, unless something arrived`() {
        #expect(course(.client, [.headBegan, .givenBack(.clean)]).reactions.last == .reuse)
        let spoken = course(.client, [.headBegan, .responseBegan, .givenBack(.clean)])
        #expect(spoken.reactions.last == .close)
        let unused = course(.client, [.headBegan, .givenBack(.clean)])
        #expect(!unused.connection.hasCarriedExchange)
    }

    @Test func `a client's connection drains after its exchange, or at once`() {
        for hasInput in [true, false] {
            let (_, reactions) = course(.server, [.drain(hasInput: hasInput)])
            #expect(reactions == [hasInput ? .nothing : .close])
        }
        let (_, reactions) = course(
            .server,
            [
                .requestHead(.init(hasContent: false, maySwitch: false)),
                .drain(hasInput: false), Self.success, .responseEnded(.clean),
            ])
        #expect(reactions == [.nothing, .nothing, .nothing, .linger])
    }
}

extension HTTP1Connection.Rest {
    /// Nothing is left.
    fileprivate static let clean = Self(isFlushed: true, hasInput: false)
}
