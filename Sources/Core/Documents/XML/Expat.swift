import CExpat

struct ExpatOptions {
    var limits: DocumentLimits
    var encoding: String?
    var reportsComments: Bool
    /// The format that errors name.
    var format: DocumentFormat
}

/// The handlers of the events.
struct ExpatEvents {
    var start: (XMLTag) throws(DocumentError) -> Void
    var text: (UnsafeRawBufferPointer) throws(DocumentError) -> Void
    var end: (UnsafeRawBufferPointer) throws(DocumentError) -> Void
    var comment: (UnsafeRawBufferPointer) throws(DocumentError) -> Void
    var instruction: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(DocumentError) -> Void
}

/// An expat parser with its handlers.
final class Expat {
    private let expat: OpaquePointer?
    private let options: ExpatOptions
    private let events: ExpatEvents
    private var limits: DocumentLimits { options.limits }
    /// Why it has stopped.
    private var failure: DocumentError? { didSet { hasStopped = true } }
    private var hasStopped = false
    private var values = 0
    /// The number of bytes of the document that have arrived.
    private var count = 0
    /// The number of bytes that were passed to expat.
    private var given = 0
    private(set) var rounds = 0
    /// Bytes that have not been passed to expat yet.
    private var held: [UInt8] = []
    /// Character data since the last tag.
    private var pendingText = ByteStack(capacity: 4096)
    /// The names of the open elements, one after another, and where each begins.
    private var names = ByteStack()
    private var nameStarts: [Int] = []
    /// Whether the document type refers to external declarations. Expat then skips references to
    /// entities, which might be declared there.
    private var hasExternalSubset = false
    /// The tag as written, while that is requested.
    private var writtenTag: [UInt8] = []

    /// For the name tables, so that nobody can choose names that collide; never 0.
    private static let hashSalt = UInt.random(in: 1...UInt.max)

    /// The number of bytes that are passed to expat at a time.
    private static let part = 65_536

    init(_ options: ExpatOptions, _ events: ExpatEvents) {
        self.options = options
        self.events = events
        nameStarts.reserveCapacity(16)
        expat = XML_ParserCreate(options.encoding)
        guard let expat else {
            stop(.memory, at: nil)
            return
        }
        XML_SetHashSalt(expat, Self.hashSalt)
        XML_SetUserData(expat, Unmanaged.passUnretained(self).toOpaque())
        setHandlers(expat)
    }

    deinit { XML_ParserFree(expat) }

    // MARK: Parts

    func push(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        if let failure { throw failure }
        guard bytes.count <= limits.bytes - count else {
            throw stop(.tooLarge(maximum: limits.bytes), at: DocumentLocation(offset: limits.bytes))
        }
        count += bytes.count
        guard held.isEmpty, bytes.count >= fewest else {
            held.append(contentsOf: bytes)
            guard held.count >= fewest else { return }
            try giveHeld(isFinal: false)
            return
        }
        try give(bytes, isFinal: false)
    }

    /// Reads a document that is entirely in memory. Expat is told with its last bytes that nothing
    /// follows, and then does not count the lines in them for positions that nobody needs.
    func read(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        if let failure { throw failure }
        guard bytes.count <= limits.bytes else {
            throw stop(.tooLarge(maximum: limits.bytes), at: DocumentLocation(offset: limits.bytes))
        }
        count = bytes.count
        try give(bytes, isFinal: true)
    }

    func finish() throws(DocumentError) {
        if let failure { throw failure }
        try giveHeld(isFinal: true)
    }

    /// The minimum number of bytes passed to expat, unless no more follow. While a tag or the like
    /// is incomplete, expat rescans it from its beginning each time it receives more: waiting for
    /// as many bytes again keeps the work proportional to the input. Expat also treats a single
    /// first byte as UTF-8, even if the second one shows that it is UTF-16.
    private var fewest: Int {
        guard given > 0, let expat else { return 2 }
        return given - Int(XML_GetCurrentByteIndex(expat))
    }

    private func giveHeld(isFinal: Bool) throws(DocumentError) {
        let bytes = held
        held = []
        try bytes.withBytes { bytes throws(DocumentError) in try give(bytes, isFinal: isFinal) }
    }

    private func give(_ bytes: UnsafeRawBufferPointer, isFinal: Bool) throws(DocumentError) {
        var rest = bytes[...]
        repeat {
            let part = rest.prefix(max(Self.part, fewest))
            rest = rest.dropFirst(part.count)
            try give(part: UnsafeRawBufferPointer(rebasing: part), isFinal && rest.isEmpty)
        } while !rest.isEmpty
    }

    private func give(part: UnsafeRawBufferPointer, _ isFinal: Bool) throws(DocumentError) {
        given += part.count
        rounds += 1
        let text = part.baseAddress?.assumingMemoryBound(to: CChar.self)
        let status = XML_Parse(expat, text, Int32(part.count), isFinal ? 1 : 0)
        if let failure { throw failure }
        guard status == XML_STATUS_OK else {
            throw stop(faultOfExpat(), at: expat.map(DocumentLocation.init))
        }
    }

    // MARK: Errors

    @discardableResult
    private func stop(_ reason: DocumentError.Reason, at location: DocumentLocation?)
        -> DocumentError
    {
        let error = DocumentError(options.format, reason, at: location)
        failure = error
        return error
    }

    /// Stops the parser from within a handler.
    private func stop(_ reason: DocumentError.Reason) {
        guard failure == nil, let expat else { return }
        stop(reason, at: DocumentLocation(expat))
        XML_StopParser(expat, XML_Bool(XML_FALSE))
    }

    /// Passes an event to a sink. Errors that the sink finds in the document get their position
    /// here.
    private func deliver(_ event: () throws(DocumentError) -> Void) {
        do { try event() } catch {
            stop(error.reason)
            if error.format != options.format {
                failure = error
            } else {
                failure?.path = error.path
            }
        }
    }

    private func faultOfExpat() -> DocumentError.Reason {
        let code = XML_GetErrorCode(expat)
        switch code {
        case XML_ERROR_UNKNOWN_ENCODING, XML_ERROR_INCORRECT_ENCODING: return .encoding
        case XML_ERROR_UNDEFINED_ENTITY: return .entity("a reference to an entity")
        case XML_ERROR_DUPLICATE_ATTRIBUTE: return .duplicateKey(nameInInput)
        case XML_ERROR_TAG_MISMATCH:
            return .malformed("\(nameInInput) is closed where \(openName) is open")
        case XML_ERROR_NO_ELEMENTS where !nameStarts.isEmpty:
            return .malformed("the element \(openName) does not end")
        case XML_ERROR_NO_ELEMENTS: return .malformed("there is no element")
        case XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
            return .malformed("there is content after the end")
        default:
            return .malformed(XML_ErrorString(code).map { String(cString: $0) } ?? "not readable")
        }
    }

    private var openName: String {
        String(
            decoding: names.bytes(from: nameStarts.last ?? names.count).prefix(40), as: UTF8.self)
    }

    /// The name at the position of an error, as far as it is ASCII; at most 40 characters.
    private var nameInInput: String {
        var offset: Int32 = 0
        var size: Int32 = 0
        guard let context = XML_GetInputContext(expat, &offset, &size), offset < size else {
            return ""
        }
        let bytes = UnsafeRawBufferPointer(start: context, count: Int(size))[Int(offset)...]
        // In UTF-16 every other byte is zero.
        let name = bytes.prefix(80).lazy.filter { $0 != 0 }
            .prefix { $0 > 0x20 && !"=>/".utf8.contains($0) }
        return String(decoding: Array(name.prefix(40)), as: UTF8.self)
    }

    // MARK: Handlers

    fileprivate func started(
        _ name: UnsafeRawBufferPointer, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) {
        deliverText()
        guard !hasStopped, let expat else { return }
        let tag = XMLTag(name, attributes, expat)
        guard hasNames(tag) else { return stop(.malformed("not well-formed (invalid token)")) }
        let before = values
        values += 1 + tag.attributeCount
        guard values <= limits.values else {
            return stop(.tooManyValues(maximum: limits.values))
        }
        if values / YieldPoint.values != before / YieldPoint.values {
            options.limits.yieldPoint?.run()
        }
        guard nameStarts.count < limits.depth else { return stop(.tooDeep(maximum: limits.depth)) }
        nameStarts.append(names.count)
        names.append(name)
        if hasExternalSubset, tag.attributeCount > 0 { checkReferences(expat) }
        guard !hasStopped else { return }
        deliver { () throws(DocumentError) in try events.start(tag) }
    }

    /// Whether the names in a tag are valid. In UTF-16 and ISO-8859-1, though not in UTF-8, expat
    /// accepts U+00AA, U+00B5 and U+00BA as letters of a name, where XML does not allow them (XML
    /// 1.0 §2.3).
    private func hasNames(_ tag: XMLTag) -> Bool {
        let isName = { (name: UnsafeRawBufferPointer) in
            !name.contains(0xC2) || XMLCharacters.isName(name)
        }
        return isName(tag.name)
            && (0..<tag.attributeCount).allSatisfy { isName(tag.attribute($0).name) }
    }

    fileprivate func ended() {
        deliverText()
        guard !hasStopped, let begin = nameStarts.popLast() else { return }
        let name = names.bytes(from: begin)
        deliver { () throws(DocumentError) in try events.end(name) }
        names.cut(to: begin)
    }

    fileprivate func handleText(_ text: UnsafeRawBufferPointer) {
        if !hasStopped { pendingText.append(text) }
    }

    fileprivate func handleComment(_ text: UnsafeRawBufferPointer) {
        deliverText()
        guard !hasStopped else { return }
        deliver { () throws(DocumentError) in try events.comment(text) }
    }

    fileprivate func handleInstruction(
        _ target: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
    ) {
        deliverText()
        guard !hasStopped else { return }
        deliver { () throws(DocumentError) in try events.instruction(target, data) }
    }

    private func deliverText() {
        guard !hasStopped, !pendingText.isEmpty else { return }
        let text = pendingText.bytes()
        deliver { () throws(DocumentError) in try events.text(text) }
        pendingText.cut(to: 0)
    }

    fileprivate func handleDocumentType(hasSubset: Bool, isElsewhere: Bool) {
        if hasSubset { stop(.entity("a document type with declarations")) }
        hasExternalSubset = isElsewhere
    }

    fileprivate func handleEntity(_ name: UnsafeRawBufferPointer) {
        let text = String(decoding: name.prefix(40), as: UTF8.self)
        stop(.entity("a reference to the entity \(text)"))
    }

    /// Searches the values of a tag's attributes for entities, where expat skips them without
    /// reporting it.
    private func checkReferences(_ expat: OpaquePointer) {
        writtenTag.removeAll(keepingCapacity: true)
        XML_SetDefaultHandler(expat) { user, text, count in
            guard let text else { return }
            let bytes = UnsafeRawBufferPointer(start: text, count: Int(count))
            Expat.with(user) { $0.writtenTag.append(contentsOf: bytes) }
        }
        XML_DefaultCurrent(expat)
        XML_SetDefaultHandler(expat, nil)
        for reference in writtenTag.split(separator: UInt8(ascii: "&")).dropFirst() {
            let name = reference.prefix { $0 != UInt8(ascii: ";") }
            let isCharacter = name.first == UInt8(ascii: "#")
            let isKnown = ["lt", "gt", "amp", "quot", "apos"].contains {
                $0.utf8.elementsEqual(name)
            }
            guard !isCharacter, !isKnown else { continue }
            return Array(name).withUnsafeBytes { handleEntity($0) }
        }
    }

    /// Calls the parser of a handler. The caller keeps it alive meanwhile: reference counting at
    /// every event would take a twentieth of the parsing time.
    fileprivate static func with(_ user: UnsafeMutableRawPointer?, _ body: (Expat) -> Void) {
        guard let user else { return }
        Unmanaged<Expat>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
    }
}

extension Expat {
    fileprivate func setHandlers(_ expat: OpaquePointer) {
        XML_SetElementHandler(
            expat,
            { user, name, attributes in
                Expat.with(user) { $0.started(.init(cString: name), attributes) }
            },
            { user, _ in Expat.with(user) { $0.ended() } })
        XML_SetCharacterDataHandler(expat) { user, text, count in
            guard let text else { return }
            let bytes = UnsafeRawBufferPointer(start: text, count: Int(count))
            Expat.with(user) { $0.handleText(bytes) }
        }
        XML_SetStartDoctypeDeclHandler(expat) { user, _, system, _, hasSubset in
            Expat.with(user) {
                $0.handleDocumentType(hasSubset: hasSubset != 0, isElsewhere: system != nil)
            }
        }
        // Neither is reached, because declarations are refused.
        XML_SetEntityDeclHandler(expat) { user, name, _, _, _, _, _, _, _ in
            Expat.with(user) { $0.handleEntity(.init(cString: name)) }
        }
        XML_SetExternalEntityRefHandler(expat) { _, _, _, _, _ in 0 }
        XML_SetSkippedEntityHandler(expat) { user, name, _ in
            Expat.with(user) { $0.handleEntity(.init(cString: name)) }
        }
        guard options.reportsComments else { return }
        XML_SetCommentHandler(expat) { user, text in
            Expat.with(user) { $0.handleComment(.init(cString: text)) }
        }
        XML_SetProcessingInstructionHandler(expat) { user, target, data in
            Expat.with(user) {
                $0.handleInstruction(.init(cString: target), .init(cString: data))
            }
        }
    }
}
