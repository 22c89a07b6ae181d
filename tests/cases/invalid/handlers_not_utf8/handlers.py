# grüße
