import Documents

extension FuzzTarget {
    func checkForm(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        try checkIndices(bytes)
        let value: DocumentValue
        do throws(DocumentError) {
            value = try FormReader.value(of: bytes, limits: .fuzzing)
        } catch { return false }
        try value.checkLimits()
        _ = try writtenJSON(value)
        // Writing a form sorts its names, so that the second time nothing changes. If a key has
        // brackets, or is empty, a form cannot express which part of its name is the key; nor where
        // an element of an array ends that is not a scalar.
        guard isPlain(value), let first = try? form(value) else { return true }
        let sorted = try reading { () throws(DocumentError) in
            try FormReader.value(of: first, limits: .fuzzingAgain)
        }
        let second = try reading { () throws(DocumentError) in try form(sorted) }
        guard first == second else { throw FuzzCheckError("another form after reading") }
        return true
    }

    /// With arrays by index, which show where each element ends, whatever it is.
    private func checkIndices(_ bytes: [UInt8]) throws(FuzzCheckError) {
        guard
            let value = try? FormReader.value(of: bytes, limits: .fuzzing, arrays: .indices)
        else { return }
        try value.checkLimits()
        guard hasPlainKeys(value), let first = try? form(value, .indices) else { return }
        let sorted = try reading { () throws(DocumentError) in
            try FormReader.value(of: first, limits: .fuzzingAgain, arrays: .indices)
        }
        let second = try reading { () throws(DocumentError) in try form(sorted, .indices) }
        guard first == second else { throw FuzzCheckError("another form by index after reading") }
    }

    private func hasPlainKeys(_ value: DocumentValue) -> Bool {
        switch value {
        case .array(let elements): elements.allSatisfy(hasPlainKeys)
        case .dictionary(let members):
            members.members.allSatisfy { member in
                !member.key.isEmpty && !member.key.utf8.contains { "[]".utf8.contains($0) }
                    && hasPlainKeys(member.value)
            }
        default: true
        }
    }

    private func isPlain(_ value: DocumentValue) -> Bool {
        switch value {
        case .array: value.depth == 1
        case .dictionary(let members):
            members.members.allSatisfy { member in
                !member.key.isEmpty && !member.key.utf8.contains { "[]".utf8.contains($0) }
                    && isPlain(member.value)
            }
        default: true
        }
    }

    private func form(
        _ value: DocumentValue, _ arrays: FormArrayStyle = .brackets
    ) throws(DocumentError) -> [UInt8] {
        var writer = FormWriter(limits: .fuzzingAgain, arrays: arrays)
        try value.replay(into: &writer)
        return try writer.finish()
    }

    /// The boundary is `b`. The body is passed whole and a few bytes at a time, and interpreted
    /// according to its head.
    func checkMultipart(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        if let text = String(validating: bytes, as: UTF8.self) {
            _ = try? MultipartDocument.boundary(of: text)
        }
        let limits = MultipartLimits(bytes: 1 << 16, parts: 20, headerBytes: 1024, partBytes: 4096)
        let parts = try? MultipartDocument.parts(of: bytes, boundary: "b", limits: limits)
        let fed = feed(bytes, limits)
        switch (parts, fed) {
        case (nil, nil): break
        case (let parts?, let fed?):
            guard parts.count <= limits.parts,
                parts.allSatisfy({ $0.content.count <= limits.partBytes })
            else { throw FuzzCheckError("parts beyond the limits") }
            guard parts.map(\.part) == fed.parts, parts.map({ Array($0.content) }) == fed.contents
            else { throw FuzzCheckError("read otherwise in small pieces") }
        default: throw FuzzCheckError("refused in one way of giving it, not in the other")
        }
        for files in MultipartFiles.allCases {
            let value = try? MultipartDocument.asDocument(
                bytes, boundary: "b", files: files, limits: limits, documentLimits: .fuzzing)
            try value?.checkLimits()
            guard value == nil || parts != nil else {
                throw FuzzCheckError("a value of a body that was refused")
            }
        }
        return parts != nil
    }

    private func feed(_ bytes: [UInt8], _ limits: MultipartLimits) -> PartSink? {
        var sink = PartSink()
        do throws(DocumentError) {
            var reader = try MultipartReader(boundary: "b", limits: limits)
            var start = 0
            while start < bytes.count {
                let end = min(start + 1 + start % 7, bytes.count)
                try Array(bytes[start..<end]).withBytes { part throws(DocumentError) in
                    try reader.feed(part, into: &sink)
                }
                start = end
            }
            try reader.finish()
        } catch { return nil }
        return sink
    }
}

private struct PartSink: MultipartSink {
    var parts: [MultipartPart] = []
    var contents: [[UInt8]] = []

    mutating func beginPart(_ part: MultipartPart) {
        parts.append(part)
        contents.append([])
    }
    mutating func content(_ bytes: UnsafeRawBufferPointer) {
        contents[contents.count - 1].append(contentsOf: bytes)
    }
    mutating func endPart() {}
}
