/** @jsxImportSource hono/jsx */

const HASHED = "Holdfast keeps only a hash of it, so nobody can show it again.";

/**
 * A secret that is shown once, ready to be copied. The script adds the button.
 *
 * @param kept what Holdfast keeps of it, in words
 */
export const Secret = ({ label, of, kept = HASHED }: { label: string; of: string; kept?: string }) => (
  <div class="field">
    <label for="secret">{label}</label>
    <div class="secret">
      <input
        id="secret"
        readonly
        value={of}
        autocomplete="off"
        spellcheck={false}
        aria-describedby="secret-hint"
      />
      <button type="button" data-copy="secret" hidden>
        Copy
      </button>
    </div>
    <p class="hint" id="secret-hint">
      It is shown once: save it now. {kept}
    </p>
  </div>
);
