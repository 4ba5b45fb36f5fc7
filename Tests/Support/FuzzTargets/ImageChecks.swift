import ImageCodecs

extension FuzzTarget {
    /// Whether AVIF is decoded; its library is loaded at run time.
    private static let decodesAVIF = ImageCodecs.load()

    /// What is decoded matches the header, and what is written is an image again.
    func checkImage(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard Self.decodesAVIF else { throw FuzzCheckError("there is no library for AVIF") }
        let maximumPixels = 1 << 14
        let header: ImageHeader
        do throws(ImageCodecError) {
            header = try ImageCodecs.inspect(bytes)
        } catch { return false }
        guard header.width > 0, header.height > 0 else {
            throw FuzzCheckError("an image of nothing")
        }
        var plan = ImagePlan()
        plan.maximumPixels = maximumPixels
        plan.maximumFrames = 10
        plan.conversions = [.gif: .png, .webp: .png, .avif: .jpeg, .jpeg: .png, .png: .jpeg]
        plan.scale = (width: 20, height: 20)
        let written: WrittenImage?
        do throws(ImageCodecError) { written = try plan.apply(to: bytes) } catch { return false }
        guard header.width * header.height <= maximumPixels else {
            throw FuzzCheckError("\(header.width) times \(header.height) pixels were let through")
        }
        guard let written else { throw FuzzCheckError("an image that was not converted") }
        let again: ImageHeader
        do throws(ImageCodecError) { again = try ImageCodecs.inspect(written.bytes) } catch {
            throw FuzzCheckError("what was written is no image: \(error.detail)")
        }
        guard again.kind == written.kind, again.width <= 20, again.height <= 20 else {
            throw FuzzCheckError("\(again) was written")
        }
        return true
    }
}
