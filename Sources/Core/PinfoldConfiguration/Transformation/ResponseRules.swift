/// What is asked, and changed, of the responses of an entry's hosts (`hosts[].response`).
package struct ResponseRules: Sendable, Equatable {
    /// The statuses that are passed on; nil: all. Others become a 502. Interim responses, and the
    /// 304 that answers a condition, are not asked.
    package var statusCodes: [ClosedRange<UInt16>]?
    /// The media types that are passed on, in lower case, without parameters; `*` may stand for a
    /// subtype. nil: all. Others become a 502.
    package var contentTypes: [String]?
    /// What content must be; nil: anything.
    package var validate: ValidatedFormat?
    /// The JSON Schema that content must satisfy.
    package var schema: SchemaFile?
    /// The translation of the content; nil: it is passed on as it came.
    package var body: ResponseBodyRules?
    package var image: ImageRules?
    /// Bytes of content that are looked at, of what came (decoded) and of what is made of it.
    package var maximumBytes = 8 << 20
    /// What is done with content that is larger.
    package var larger = LargerBodyMode.refuse
    /// What is done with a response that says `no-transform` (RFC 9111, section 5.2.2.6), or has
    /// Content-Range, where it would be changed.
    package var noTransform = NoTransformMode.pass
    /// Which form the cache keeps of a response that is changed.
    package var cacheForm = CachedForm.translated

    /// Rules that ask and change nothing.
    package init() {}

    /// Whether content may become other content.
    package var translates: Bool { body != nil || image?.changes ?? false }

    /// Whether the cache keeps another form than clients are sent.
    package var storesOrigin: Bool { translates && cacheForm == .origin }
}

/// What the content of a response is parsed as, before a byte of it is passed on or stored.
package enum ValidatedFormat: String, Sendable, Equatable, CaseIterable {
    case json
    case xml
    case plist
    case image
}

/// A JSON Schema and the file that it is from.
package struct SchemaFile: Sendable, Equatable {
    /// The absolute path.
    package var path: String
    /// The schema, read when the configuration was loaded.
    package var text: [UInt8]

    package init(path: String, text: [UInt8]) {
        self.path = path
        self.text = text
    }
}

/// The translation of responses' content.
package struct ResponseBodyRules: Sendable, Equatable {
    package var from: BodyFormat
    package var to: BodyFormat
    /// Members of dictionaries whose value is null are taken out, at every depth.
    package var removesKeysWithNullValues = false
    /// The form of a property list that is written: binary, else XML.
    package var writesBinaryPropertyLists = false

    package init(from: BodyFormat, to: BodyFormat) {
        self.from = from
        self.to = to
    }
}

/// What is done with content beyond the largest size.
package enum LargerBodyMode: String, Sendable, Equatable, CaseIterable {
    /// A 502.
    case refuse
    /// It is passed on as it comes, unchecked and unchanged.
    case pass
}

/// Which form of a changed response is stored.
package enum CachedForm: String, Sendable, Equatable, CaseIterable {
    /// What clients are sent.
    case translated
    /// What the origin sent; it is translated for each client.
    case origin
}

/// What is asked, and changed, of images.
package struct ImageRules: Sendable, Equatable {
    /// The types that are passed on, in lower case; nil: every one that is recognized. Types are
    /// told by the content, not by Content-Type.
    package var accept: [ImageType]?
    /// What types are turned into.
    package var convert: [ImageConversion] = []
    /// Width times height at most, before anything is decoded.
    package var maximumPixels = 16_777_216
    /// Pixels of width and of height at most, to which larger images are scaled down; nil: they
    /// are not scaled.
    package var scaleTo: ImageSize?

    package init() {}

    /// Whether some image becomes another.
    package var changes: Bool { !convert.isEmpty || scaleTo != nil }
}

/// An image type that is recognized.
package enum ImageType: String, Sendable, Equatable, CaseIterable {
    case png = "image/png"
    case jpeg = "image/jpeg"
    case gif = "image/gif"
    case webp = "image/webp"
    case avif = "image/avif"
}

/// A type and what takes its place.
package struct ImageConversion: Sendable, Equatable {
    package var from: ImageType
    /// PNG or JPEG.
    package var to: ImageType

    package init(from: ImageType, to: ImageType) {
        self.from = from
        self.to = to
    }
}

/// A width and a height in pixels.
package struct ImageSize: Sendable, Equatable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}
