import COpenSSL
import PinfoldTLS
import Trust

extension FuzzTarget {
    /// The first byte selects the ClientHello that is answered; the server's bytes follow.
    ///
    /// What they show is the same however they arrive, and the certificates are those that a client
    /// of the TLS library sees.
    func checkServerFlight(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let stream = Array(bytes.dropFirst())
        let client = selector & 3 == 3 ? LibraryClient() : nil
        let body =
            client.map { Array($0.opening.dropFirst(TLSBytes.headerBytes)) }
            ?? TLSBytes.clientHellos[Int(selector & 3) % TLSBytes.clientHellos.count]
        let reading = FlightReading(bytes: stream, hello: try TLSBytes.read(body))
        let slow = reading.outcome(Array(1..<(stream.count + 1)))
        let known = Array(stream[..<slow.end])
        let part = FlightReading(bytes: known, hello: reading.hello)
        let outcome = try Arrivals.read(known) { ends in part.outcome(ends).outcome }
        guard outcome == slow.outcome else {
            throw FuzzCheckError("\(outcome) at once, \(slow.outcome) byte by byte")
        }
        var expected = outcome
        if case .found(.presented(let proof)) = outcome {
            try check(proof, of: known, answering: reading.hello, client)
            // What follows the flight is refused if it arrives with it, or else when it arrives.
            if slow.end < stream.count { expected = .refused(.unexpected("data after the flight")) }
        }
        let whole = reading.outcome([stream.count]).outcome
        guard whole == expected else { throw FuzzCheckError("\(whole), not \(expected)") }
        reading.followRetry()
        if case .found = outcome { return true }
        return false
    }

    private func check(
        _ proof: ServerProof, of bytes: [UInt8], answering hello: ClientHello,
        _ client: LibraryClient?
    ) throws(FuzzCheckError) {
        guard (1...ServerFlight.maximumCertificates).contains(proof.chain.count),
            proof.chain.reduce(0, { $0 + $1.count }) <= bytes.count,
            proof.randoms.starts(with: hello.random), proof.randoms.count == 64,
            hello.suites.contains(proof.suite), hello.offers(version: proof.version)
        else { throw FuzzCheckError("\(proof) was presented") }
        _ = try? proof.verifyPossession()
        guard let client else { return }
        client.take(bytes)
        guard !client.chain.isEmpty else { return }
        let own = proof.chain.map { der -> [UInt8]? in
            guard let certificate = parseCertificate(der: der) else { return nil }
            defer { X509_free(certificate) }
            return LibraryClient.encoded(certificate)
        }
        guard own == client.chain else {
            throw FuzzCheckError("the library sees other certificates")
        }
    }

    /// The first byte selects what a HelloRetryRequest asked for; what the client sends then
    /// follows. If it agrees, it asks for the same server as before, with the same random and
    /// cipher suites, and the server's answer to it is followed.
    func checkSecondHello(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let changes = [
            [TLSBytes.askedGroup], [TLSBytes.askedCookie],
            [TLSBytes.askedGroup, TLSBytes.askedCookie],
        ]
        let hello = try TLSBytes.read(TLSBytes.retried(offersEarlyData: selector & 8 != 0))
        let answer = FlightReading(
            bytes: TLSBytes.serverHello(retryingWith: changes[Int(selector & 3) % changes.count]),
            hello: hello)
        guard let retry = answer.retry(readsEncryptedHello: selector & 4 != 0) else {
            throw FuzzCheckError("a HelloRetryRequest that is not followed")
        }
        let stream = Array(bytes.dropFirst())
        let outcome = try Arrivals.read(stream) { ends in
            SecondOutcome(stream, ends, after: retry)
        }
        guard case .agrees(let count)? = outcome.found else { return false }
        guard count <= stream.count else { throw FuzzCheckError("\(count) bytes are the client's") }
        try check(Array(stream[..<count]), after: hello, retry)
        return true
    }

    private func check(
        _ bytes: [UInt8], after first: ClientHello, _ retry: HelloRetry
    ) throws(FuzzCheckError) {
        var stream = HandshakeStream(
            stage: .afterRetry(skipsEarlyData: first.offersEarlyData))
        var items: [HandshakeStream.Item] = []
        _ = StreamOutcome.error(of: &stream, bytes[...], into: &items)
        guard case .message(let message)? = items.last else {
            throw FuzzCheckError("no second ClientHello")
        }
        let second = try TLSBytes.read(message.body)
        guard second.serverName == first.serverName, second.random == first.random,
            second.suites == first.suites, second.sessionID == first.sessionID,
            second.versions == first.versions, !second.offersEarlyData
        else { throw FuzzCheckError("\(second) was accepted after \(first)") }
        var retry = retry
        let answer = TLSBytes.serverHello()
        do throws(TLSWireError) {
            _ = try bytes.part(0..<bytes.count) { part throws(TLSWireError) in
                try retry.takeFromClient(part)
            }
            let found = try answer.part(0..<answer.count) { part throws(TLSWireError) in
                try retry.takeFromServer(part)
            }
            if found == .encrypted { return }
        } catch {}
        throw FuzzCheckError("the answer to a second ClientHello is not followed")
    }
}

/// What a server's bytes show.
private enum FlightOutcome: Equatable {
    case incomplete
    case found(ServerFlight.Finding)
    case refused(TLSWireError)
}

private struct FlightReading {
    var bytes: [UInt8]
    var hello: ClientHello

    /// The outcome, and the end of the piece that decided it.
    func outcome(_ ends: [Int]) -> (outcome: FlightOutcome, end: Int) {
        var flight = ServerFlight(answering: hello)
        return outcome(ends, &flight)
    }

    private func outcome(
        _ ends: [Int], _ flight: inout ServerFlight
    ) -> (outcome: FlightOutcome, end: Int) {
        var start = 0
        for end in ends {
            do throws(TLSWireError) {
                let found = try bytes.part(start..<end) { part throws(TLSWireError) in
                    try flight.take(part)
                }
                if let found { return (.found(found), end) }
            } catch {
                return (.refused(error), end)
            }
            start = end
        }
        return (.incomplete, bytes.count)
    }

    /// The continuation after a HelloRetryRequest that may be followed.
    func retry(readsEncryptedHello: Bool) -> HelloRetry? {
        var flight = ServerFlight(answering: hello)
        _ = outcome([bytes.count], &flight)
        return try? flight.retry(readsEncryptedHello: readsEncryptedHello)
    }

    func followRetry() {
        for readsEncryptedHello in [false, true] {
            _ = retry(readsEncryptedHello: readsEncryptedHello)
        }
    }
}

/// What a client has sent after a HelloRetryRequest.
private struct SecondOutcome: Equatable {
    /// Its bytes are counted from the first one on.
    var found: HelloRetry.ClientOutcome?
    var error: TLSWireError?

    init(_ bytes: [UInt8], _ ends: [Int], after retry: HelloRetry) {
        var retry = retry
        var start = 0
        for end in ends {
            do throws(TLSWireError) {
                found = try bytes.part(start..<end) { part throws(TLSWireError) in
                    try retry.takeFromClient(part)
                }
            } catch {
                self.error = error
            }
            if case .agrees(let count)? = found { found = .agrees(count: start + count) }
            guard found == nil, error == nil else { return }
            start = end
        }
    }
}
