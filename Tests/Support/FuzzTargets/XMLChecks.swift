import Documents

extension FuzzTarget {
    func checkXML(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let chunks = parsedInChunks(bytes)
        let document: XMLTree
        do throws(DocumentError) {
            document = try XMLTree(bytes, limits: .fuzzing)
        } catch {
            // A tree of elements is refused if and only if its events are.
            guard chunks == nil else {
                throw FuzzCheckError("refused whole, not in parts: \(error)")
            }
            return false
        }
        guard chunks != nil else { throw FuzzCheckError("refused in parts, not whole") }
        let again = try reading { () throws(DocumentError) in
            try XMLTree(document.write(limits: .fuzzingAgain), limits: .fuzzingAgain)
        }
        guard again == document else { throw FuzzCheckError("read otherwise after writing") }
        try checkXMLValue(bytes)
        return true
    }

    /// The document as a value, by the convention of xmltodict.
    private func checkXMLValue(_ bytes: [UInt8]) throws(FuzzCheckError) {
        guard let value = try? XMLValueReader.value(of: bytes, limits: .fuzzing) else { return }
        let again = try reading { () throws(DocumentError) in
            var writer = XMLValueWriter(limits: .fuzzingAgain)
            try value.replay(into: &writer)
            return try XMLValueReader.value(of: writer.finish(), limits: .fuzzingAgain)
        }
        guard again == value else { throw FuzzCheckError("another value after writing") }
        _ = try writtenJSON(value)
    }

    /// The number of events when the document arrives a few bytes at a time.
    private func parsedInChunks(_ bytes: [UInt8]) -> Int? {
        var limits = DocumentLimits.fuzzing
        limits.depth = min(limits.depth, XMLTree.maximumDepth)
        let parser = XMLPushParser(CountingSink(), limits: limits, reportsComments: false)
        do throws(DocumentError) {
            var start = 0
            while start < bytes.count {
                let end = min(start + 1 + start % 13, bytes.count)
                try Array(bytes[start..<end]).withBytes { part throws(DocumentError) in
                    try parser.push(part)
                }
                start = end
            }
            try parser.finish()
        } catch { return nil }
        return parser.sink.count
    }

    func checkPropertyList(
        _ bytes: [UInt8], as form: PropertyListForm
    ) throws(FuzzCheckError) -> Bool {
        let value: DocumentValue
        do throws(DocumentError) {
            let found = try bytes.withBytes { bytes throws(DocumentError) in
                try PropertyListReader.form(of: bytes)
            }
            guard found == form else { return false }
        } catch { return false }
        if form == .xml { try compareWithExpat(bytes) }
        do throws(DocumentError) {
            value = try PropertyListReader.value(of: bytes, limits: .fuzzing)
        } catch { return false }
        try value.checkLimits()
        // JSON cannot express the years of every date.
        _ = try? writtenJSON(value)
        // Binary ones can express null, but no other program reads it: it is not written.
        guard !value.hasNull else { return true }
        let binary = try again(value, .binary)
        // Insignificant digits of a real, as in 1.50, are lost: the number is the same.
        let expected = form == .binary ? value : try again(binary, .binary)
        guard binary == expected else {
            throw FuzzCheckError("another value after writing it binary")
        }
        try checkXMLPropertyList(of: value)
        return true
    }

    /// What is read without expat is what expat reads.
    private func compareWithExpat(_ bytes: [UInt8]) throws(FuzzCheckError) {
        let found = Result { () throws(DocumentError) in
            try PropertyListReader.value(of: bytes, limits: .fuzzing)
        }
        let expected = Result { () throws(DocumentError) in
            try PropertyListReader.valueByExpat(of: bytes, limits: .fuzzing)
        }
        guard found == expected else { throw FuzzCheckError("not what expat reads: \(expected)") }
    }

    /// XML does not allow every character and truncates fractions of seconds; everything else
    /// stays.
    private func checkXMLPropertyList(of value: DocumentValue) throws(FuzzCheckError) {
        guard (try? propertyList(value, .xml)) != nil else { return }
        let once = try again(value, .xml)
        let twice = try again(once, .xml)
        guard once == twice else { throw FuzzCheckError("another value after writing it as XML") }
        guard once.count == value.count else { throw FuzzCheckError("values were lost in XML") }
    }
}

/// The value, written and read.
private func again(
    _ value: DocumentValue, _ form: PropertyListForm
) throws(FuzzCheckError) -> DocumentValue {
    try reading { () throws(DocumentError) in
        try PropertyListReader.value(of: propertyList(value, form), limits: .fuzzingAgain)
    }
}

private func propertyList(
    _ value: DocumentValue, _ form: PropertyListForm
) throws(DocumentError) -> [UInt8] {
    switch form {
    case .xml:
        var writer = XMLPropertyListWriter(limits: .fuzzingAgain)
        try value.replay(into: &writer)
        return try writer.finish()
    case .binary:
        var writer = BinaryPropertyListWriter(limits: .fuzzingAgain)
        try value.replay(into: &writer)
        return try writer.finish()
    }
}

/// Counts the events of a document.
private struct CountingSink: XMLSink {
    var count = 0

    mutating func start(_ tag: XMLTag) {
        for index in 0..<tag.attributeCount { count += tag.attribute(index).value.count }
        count += 1
    }
    mutating func text(_ text: UnsafeRawBufferPointer) { count += text.count }
    mutating func end(_ name: UnsafeRawBufferPointer) { count += 1 }
}
