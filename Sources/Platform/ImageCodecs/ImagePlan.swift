/// What is asked of an image, and what is made of it.
package struct ImagePlan: Sendable, Equatable {
    /// The types that are passed on.
    package var accepted = Set(ImageKind.allCases)
    /// What takes the place of a type: PNG or JPEG.
    package var conversions: [ImageKind: ImageKind] = [:]
    /// Bytes of the image.
    package var maximumBytes = 64 << 20
    /// Width times height.
    package var maximumPixels = 1 << 24
    /// Pictures of an animation.
    package var maximumFrames = 1000
    /// Bytes of what is made of it.
    package var maximumResultBytes = 64 << 20
    /// Width and height in pixels, 1...``largestSide``, to which larger images are scaled down.
    package var scale: (width: Int, height: Int)?

    /// Pixels of a side that can be asked for.
    package static let largestSide = 1 << 24

    package init() {}

    package static func == (one: ImagePlan, other: ImagePlan) -> Bool {
        one.accepted == other.accepted && one.conversions == other.conversions
            && one.maximumBytes == other.maximumBytes && one.maximumPixels == other.maximumPixels
            && one.maximumFrames == other.maximumFrames
            && one.maximumResultBytes == other.maximumResultBytes
            && one.scale?.width == other.scale?.width && one.scale?.height == other.scale?.height
    }
}

/// An image that was made of another.
package struct WrittenImage: Sendable, Equatable {
    /// PNG or JPEG.
    package var kind: ImageKind
    package var bytes: [UInt8]

    package init(kind: ImageKind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }
}

extension ImagePlan {
    /// Holds an image to the plan: what its head says first, then all of it is decoded, though only
    /// the first frame of an animation. nil: it is fine as it is.
    package func apply(to bytes: [UInt8]) throws(ImageFailure) -> WrittenImage? {
        guard bytes.count <= maximumBytes else { throw .tooManyBytes(limit: maximumBytes) }
        guard let kind = ImageKind(signatureOf: bytes) else { throw .notAnImage }
        guard conversions[kind] != nil || accepted.contains(kind) else { throw .notAccepted(kind) }
        let header = try ImageCodecs.inspect(bytes)
        try ImageCodecs.check(header.width, header.height, maximumPixels)
        guard header.frames <= maximumFrames else {
            throw .tooManyFrames(header.frames, limit: maximumFrames)
        }
        let decoded = try ImageCodecs.decode(bytes, header, maximumPixels: maximumPixels)
        let target = size(of: decoded.raster, decoded.orientation)
        guard conversions[kind] != nil || target != nil else { return nil }
        var raster = decoded.raster
        if let target { raster = try raster.scaled(to: target.width, target.height) }
        raster = try raster.oriented(decoded.orientation)
        return try write(raster, from: kind)
    }

    /// To what the pixels are scaled, before they are turned; nil: they are not.
    private func size(of raster: Raster, _ orientation: Int) -> (width: Int, height: Int)? {
        guard let scale else { return nil }
        return Raster.transposes(orientation)
            ? Raster.size(of: raster.width, raster.height, within: scale.height, scale.width)
            : Raster.size(of: raster.width, raster.height, within: scale.width, scale.height)
    }

    private func write(_ raster: Raster, from kind: ImageKind) throws(ImageFailure) -> WrittenImage
    {
        if try writtenKind(of: raster, from: kind) == .jpeg {
            let bytes = try ImageCodecs.encodeJPEG(raster, maximumBytes: maximumResultBytes)
            return WrittenImage(kind: .jpeg, bytes: bytes)
        }
        let bytes = try ImageCodecs.encodePNG(raster, maximumBytes: maximumResultBytes)
        return WrittenImage(kind: .png, bytes: bytes)
    }

    /// What the conversion says. Where only the size changes, PNG and JPEG stay what they are;
    /// drawings (GIF) and what is transparent become PNG, other WebP and AVIF images JPEG, each
    /// the other if only that is accepted.
    private func writtenKind(
        of raster: Raster, from kind: ImageKind
    ) throws(ImageFailure) -> ImageKind {
        if let conversion = conversions[kind] { return conversion }
        if kind == .png || kind == .jpeg { return kind }
        let wanted: ImageKind = kind == .gif || raster.hasTransparency ? .png : .jpeg
        if accepted.contains(wanted) { return wanted }
        let other: ImageKind = wanted == .png ? .jpeg : .png
        guard accepted.contains(other) else { throw .notWritable(kind) }
        return other
    }
}
