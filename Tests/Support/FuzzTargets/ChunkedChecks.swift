import HTTPCore

extension FuzzTarget {
    /// The first byte selects the recipient and the limits; the body follows.
    ///
    /// Content, trailers and end are the same however the body arrives, and if its content is
    /// gathered. What is read is read again after it has been written.
    func checkChunked(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let reading = BodyReading(
            bytes: Array(bytes.dropFirst()),
            limits: selector & 32 == 0
                ? ChunkedLimits()
                : ChunkedLimits(extensionBytes: 12, trailerBytes: 40, trailerFields: 2),
            isUserAgent: selector & 8 != 0)
        let body = try Arrivals.read(reading.bytes) { ends throws(FuzzCheckError) in
            try reading.decoded(ends)
        }
        for most in [1, 3, 1000] {
            let gathered = try Arrivals.read(reading.bytes) { ends throws(FuzzCheckError) in
                try reading.gathered(ends, atMost: most)
            }
            guard gathered == body else {
                throw FuzzCheckError("\(gathered) was gathered, \(body) decoded")
            }
        }
        guard body.end != nil else { return false }
        try reading.checkWritten(body)
        return true
    }
}

private struct DecodedBody: Equatable {
    var content: [UInt8] = []
    /// Where the body ends; `nil` if it has not.
    var end: Int?
    var error: WireError?
    /// The trailers of a body that has ended: their bytes, and the fields over them.
    var trailerBytes: [UInt8] = []
    var trailers: [Field] = []

    mutating func finish(_ decoder: ChunkedDecoder, at position: Int) {
        end = position
        trailerBytes = Array(decoder.trailerBytes)
        trailers = Array(decoder.trailers)
    }
}

private struct BodyReading {
    var bytes: [UInt8]
    var limits: ChunkedLimits
    var isUserAgent: Bool

    func decoded(_ ends: [Int]) throws(FuzzCheckError) -> DecodedBody {
        let bytes = bytes
        var decoder = ChunkedDecoder(limits: limits, isUserAgent: isUserAgent)
        var body = DecodedBody()
        var position = 0
        for end in ends {
            while position < end {
                let step: BodyStep
                do throws(WireError) {
                    step = try decoder.decode(bytes.span.extracting(position..<end))
                } catch {
                    body.error = error
                    return body
                }
                guard let content = content(of: step, in: position..<end) else {
                    throw FuzzCheckError("\(step) of the bytes \(position) to \(end)")
                }
                body.content += bytes[content]
                position += consumed(step)
                if case .end = step {
                    body.finish(decoder, at: position)
                    return body
                }
            }
        }
        return body
    }

    func gathered(_ ends: [Int], atMost most: Int) throws(FuzzCheckError) -> DecodedBody {
        var decoder = BodyDecoder(.chunked, limits: limits, isUserAgent: isUserAgent)
        var body = DecodedBody()
        var received = bytes
        var position = 0
        for end in ends {
            while position < end {
                var found: GatheredStep?
                received.withUnsafeMutableBytes { buffer in
                    do throws(WireError) {
                        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[position..<end])
                        found = try decoder.gather(rest, atMost: most)
                    } catch {
                        body.error = error
                    }
                }
                guard let found else { return body }
                guard let content = content(of: found.step, in: position..<end),
                    (1...most).contains(found.parts)
                else { throw FuzzCheckError("\(found) of the bytes \(position) to \(end)") }
                body.content += received[content]
                position += consumed(found.step)
                if decoder.isComplete {
                    body.finish(decoder.chunked, at: position)
                    return body
                }
            }
        }
        return body
    }

    /// The content that a step found, as indices of the body's bytes; `nil` if the step claims what
    /// it was not given, or does nothing.
    private func content(of step: BodyStep, in given: Range<Int>) -> Range<Int>? {
        switch step {
        case .data(let offset, let count, let consumed):
            guard offset >= 0, count > 0, offset + count <= consumed, consumed <= given.count else {
                return nil
            }
            return (given.lowerBound + offset)..<(given.lowerBound + offset + count)
        case .needMore(let consumed): return consumed == given.count ? 0..<0 : nil
        case .end(let consumed): return (1...given.count).contains(consumed) ? 0..<0 : nil
        }
    }

    private func consumed(_ step: BodyStep) -> Int {
        switch step {
        case .data(_, _, let consumed), .needMore(let consumed), .end(let consumed): consumed
        }
    }

    /// Writes a body as a gateway does, and reads what was written.
    func checkWritten(_ body: DecodedBody) throws(FuzzCheckError) {
        guard body.trailers.count <= limits.trailerFields,
            body.trailerBytes.count <= limits.trailerBytes,
            body.trailers.allSatisfy({ Int($0.value.end) <= body.trailerBytes.count })
        else { throw FuzzCheckError("trailers beyond the limits") }
        var decoder = ChunkedDecoder(limits: limits, isUserAgent: isUserAgent)
        let section = trailers(of: &decoder)
        let capacity = bytes.count + 100
        let written = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(buffer))
            if !body.content.isEmpty {
                writer.appendChunkSize(body.content.count)
                writer.append(body.content.span)
                writer.appendLineEnd()
            }
            if let section { writer.appendLastChunk(section) } else { writer.append("0\r\n\r\n") }
            count = writer.overflowed ? 0 : writer.count
        }
        let again = try BodyReading(bytes: written, limits: limits, isUserAgent: false)
            .decoded([written.count])
        let kept = body.trailers.filter { !FieldIDSet.forbiddenInTrailers.contains($0.id) }
        let isSame =
            again.content == body.content && again.end == written.count
            && again.trailers.count == kept.count
            && zip(kept, again.trailers).allSatisfy {
                $0.id == $1.id
                    && body.trailerBytes[$0.name.indices] == again.trailerBytes[$1.name.indices]
                    && body.trailerBytes[$0.value.indices] == again.trailerBytes[$1.value.indices]
            }
        guard isSame else { throw FuzzCheckError("\(written) was written, which is another body") }
    }

    private func trailers(of decoder: inout ChunkedDecoder) -> TrailerSection? {
        let bytes = bytes
        var position = 0
        while let step = try? decoder.decode(bytes.span.extracting(position..<bytes.count)) {
            position += consumed(step)
            if case .end = step { break }
        }
        return decoder.trailerSection
    }
}
