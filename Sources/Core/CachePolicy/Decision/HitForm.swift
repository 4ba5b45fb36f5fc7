import HTTPCore

extension HitForm {
    /// The form in which a stored response answers a request: determined by the client's own
    /// preconditions, then its range (RFC 9110 §13.2.2), then the method.
    ///
    /// Conditions and ranges apply only to a 200; any other stored status is sent as it is (RFC
    /// 9111 §4.3.2).
    public init(
        of stored: StoredMetadata, storedHead: Span<UInt8>, for request: borrowing RequestHead,
        in requestBytes: Span<UInt8>, options: PolicyOptions
    ) {
        let whole: HitForm = request.method == .head ? .headOnly : .full
        guard stored.status == 200 else {
            self = whole
            return
        }
        switch ClientCondition(
            of: request.fields, in: requestBytes, against: stored, storedHead: storedHead,
            options: options)
        {
        case .notModified:
            self = .notModified
            return
        case .none, .modified: break
        }
        // Range is only defined for GET (RFC 9110 §14.2).
        guard request.method == .get, let complete = stored.bodyBytes,
            let range = request.fields.only(.range),
            Self.ifRangeHolds(request.fields, in: requestBytes, stored, storedHead, options)
        else {
            self = whole
            return
        }
        switch MultipartRanges.selection(range.value, in: requestBytes, of: complete) {
        case .whole: self = whole
        case .one(let first, let last):
            self = .partial(first: first, last: last, complete: complete)
        case .unsatisfiable: self = .rangeNotSatisfiable(complete: complete)
        case .several:
            let boundary = UInt64.random(in: 0...(.max))
            let parts = MultipartRanges(
                of: stored, storedHead: storedHead, for: request, in: requestBytes,
                boundary: boundary)
            self = parts.map { .several(count: $0.count, boundary: boundary) } ?? whole
        }
    }

    /// If-Range (RFC 9110 §13.1.5): true if it is absent; an entity tag must match by strong
    /// comparison; a date must be exactly Last-Modified, and that must be a strong validator.
    private static func ifRangeHolds(
        _ fields: FieldSection, in bytes: Span<UInt8>, _ stored: StoredMetadata,
        _ storedHead: Span<UInt8>, _ options: PolicyOptions
    ) -> Bool {
        guard fields.contains(.ifRange) else { return true }
        guard let value = fields.only(.ifRange)?.value, !value.isEmpty else { return false }
        if !stored.entityTag.isEmpty,
            EntityTag.stronglyMatches(value, in: bytes, stored.entityTag, in: storedHead)
        {
            return true
        }
        guard options.trustsLastModified, stored.flags.contains(.strongLastModified),
            let modified = stored.lastModifiedTime
        else { return false }
        let date = bytes.extracting(value.indices)
        return HTTPDate.parse(date, now: stored.times.responseTime) == modified
    }
}

/// The client's If-None-Match or If-Modified-Since, evaluated against a stored response
/// (RFC 9110 §13.1.2 and §13.1.3, RFC 9111 §4.3.2).
enum ClientCondition: Equatable {
    /// No condition applies.
    case none
    /// The client already has it: 304.
    case notModified
    /// The client does not have it.
    case modified

    /// If-None-Match takes precedence over If-Modified-Since and uses weak comparison; an
    /// If-Modified-Since that is not exactly one date is ignored, as is any where dates do not
    /// distinguish contents.
    init(
        of fields: FieldSection, in bytes: Span<UInt8>, against stored: StoredMetadata,
        storedHead: Span<UInt8>, options: PolicyOptions
    ) {
        if fields.contains(.ifNoneMatch) {
            self = Self.matches(fields, in: bytes, stored, storedHead) ? .notModified : .modified
        } else if options.trustsLastModified, let since = fields.only(.ifModifiedSince),
            let time = HTTPDate.parse(
                bytes.extracting(since.value.indices), now: stored.times.responseTime)
        {
            self = (stored.lastModifiedTime ?? stored.date) <= time ? .notModified : .modified
        } else {
            self = .none
        }
    }

    /// Whether some If-None-Match line contains `*` or the stored response's tag.
    static func matches(
        _ fields: FieldSection, in bytes: Span<UInt8>, _ stored: StoredMetadata,
        _ storedHead: Span<UInt8>
    ) -> Bool {
        var lines = FieldValueIterator(.ifNoneMatch)
        while let value = lines.next(in: fields) {
            var list = EntityTagList(value)
            while let tag = list.next(in: bytes) {
                if bytes.holds("*", at: tag) { return true }
                if stored.entityTag.isEmpty { continue }
                if EntityTag.weaklyMatches(tag, in: bytes, stored.entityTag, in: storedHead) {
                    return true
                }
            }
        }
        return false
    }

    /// Whether some If-None-Match line contains `*`.
    static func hasAny(_ fields: FieldSection, in bytes: Span<UInt8>) -> Bool {
        var lines = FieldValueIterator(.ifNoneMatch)
        while let value = lines.next(in: fields) {
            var list = EntityTagList(value)
            while let tag = list.next(in: bytes) {
                if bytes.holds("*", at: tag) { return true }
            }
        }
        return false
    }
}
